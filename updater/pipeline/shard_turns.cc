#include "updater/pipeline/shard_turns.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "updater/marks/gaps.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kNodesEvery{100};
constexpr std::chrono::milliseconds kAgainAfter{50};
constexpr std::chrono::milliseconds kAgainAfterMax{1000};
// A shard that was well for less long is away as soon as it is lost again. Otherwise one that comes
// and goes would hold up all others for `patience` each time.
constexpr std::chrono::seconds kWell{10};

SlotSet slots_of(const std::vector<redis::SlotRange>& ranges) {
  SlotSet slots;
  for (const redis::SlotRange& range : ranges) slots |= SlotSet(range.first, range.last);
  return slots;
}

bool waits_for_kafka(const ShardedPartition& p) {
  return std::ranges::any_of(p.places, [](const auto& it) { return it.second.unanswered; });
}

// What is wrong with a shard that is away, for people.
std::string put_off(const std::string& address, const std::string& why) {
  return fmt::format(
      "shard {}: its marks cannot be confirmed; the events of its users are put off, and those of "
      "the other shards go on: {}",
      address, why);
}

// Whether whoever finds the mark reads again all that is missing for its users.
bool says_missing(const MarkValue& mark, const MissingOffsets& missing) {
  if (missing.empty()) return true;
  const Gaps gaps = missing.of(mark.shard->slots | mark.shard->partly);
  return gaps_covered(gaps_below(gaps, mark.position), mark.gaps);
}

std::string without_slots(const std::string& address, const std::string& why) {
  return fmt::format(
      "master {} without slots: until it answers, no mark takes in slots that move between the "
      "other shards; make it answer, or remove it (CLUSTER FORGET): {}",
      address, why);
}

}  // namespace

ShardTurns::ShardTurns(std::shared_ptr<ShardPort> shards, Options options, AskLog ask_log,
                       Metrics& metrics, LogCallback log)
    : shard_port_(std::move(shards)),
      options_(std::move(options)),
      ask_log_(std::move(ask_log)),
      metrics_(&metrics),
      log_(std::move(log)) {
  away_.set();
}

void ShardTurns::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

ShardedPartition& ShardTurns::add(std::int32_t id, ShardMarks marks, std::string key_behind) {
  remove(id);
  ShardedPartition& added =
      partitions_.emplace(id, ShardedPartition(std::move(marks), std::move(key_behind)))
          .first->second;
  tell_nodes(added.marks);
  for (auto& [node, shard] : shards_) {
    // A shard that is away is not waited for. Otherwise no mark of the partition could be written,
    // and nothing of it read, before that shard is back.
    if (shard.away) added.marks.lost(node);
    shard.due = {};
  }
  return added;
}

void ShardTurns::remove(std::int32_t id) {
  if (partitions_.erase(id) == 0) return;
  // What is under way may be about it, and the partition may be added again at once.
  for (auto& [node, shard] : shards_) {
    if (!std::exchange(shard.call, nullptr)) continue;
    shard.phase = TurnPhase::kIdle;
    shard.jobs.clear();
    shard.later.clear();
    for (auto& [other, p] : partitions_) p.marks.doubtful(node);
  }
}

ShardedPartition* ShardTurns::find(std::int32_t id) {
  const auto found = partitions_.find(id);
  return found == partitions_.end() ? nullptr : &found->second;
}

// --- Which shards there are, and which of them are well.

// Those that have slots, by the client's map, and masters that are to get some or had some: keys of
// a slot on the move may be there.
std::map<std::string, ShardTurns::ShardInTurn> ShardTurns::nodes_now() const {
  std::map<std::string, ShardInTurn> nodes;
  const auto add = [&](const std::string& id, const std::string& address, SlotSet slots) {
    const auto number = shard_port_->node_at(address);
    if (!number) return;
    ShardInTurn& shard = nodes[id];
    shard.address = address;
    shard.number = *number;
    shard.mapped = std::move(slots);
  };
  for (const redis::ClusterShard& shard : shard_port_->shards()) {
    add(shard.id, shard.address, slots_of(shard.slots));
  }
  if (nodes.empty()) return nodes;
  for (const auto& [node, shard] : shards_) {
    if (shard.epoch == 0) continue;
    // Certificates may name hostnames only. But where the cluster's clients are given addresses,
    // its hostnames need not be known here.
    const bool by_name = std::ranges::any_of(
        shard.look.masters, [&node = node, &shard = shard](const NodeLook::Master& master) {
          return master.id == node && master.named_address == shard.address;
        });
    for (const NodeLook::Master& master : shard.look.masters) {
      if (master.has_slots || nodes.contains(master.id)) continue;
      const bool named = by_name && !master.named_address.empty();
      add(master.id, named ? master.named_address : master.address, {});
    }
  }
  return nodes;
}

void ShardTurns::tell_nodes(ShardMarks& marks) const {
  std::vector<std::string> ids;
  for (const auto& [node, shard] : shards_) ids.push_back(node);
  marks.set_nodes(ids);
}

void ShardTurns::follow_nodes(Clock::time_point now) {
  if (now < nodes_due_) return;
  nodes_due_ = now + kNodesEvery;
  std::map<std::string, ShardInTurn> nodes = nodes_now();
  if (nodes.empty()) return;
  bool changed =
      std::erase_if(shards_, [&](const auto& it) { return !nodes.contains(it.first); }) > 0;
  for (auto& [node, found] : nodes) {
    const auto [at, is_new] = shards_.try_emplace(node);
    ShardInTurn& shard = at->second;
    changed = changed || is_new;
    if (is_new) shard.unsteady_since = now;
    shard.address = std::move(found.address);
    shard.number = found.number;
    if (shard.mapped == found.mapped) continue;
    const bool had_none = shard.mapped.empty();
    shard.mapped = std::move(found.mapped);
    if (had_none && shard.away) report(LogLevel::kWarning, put_off(shard.address, shard.why));
    for (int slot = 0; slot < SlotSet::kSlots; ++slot) {
      shard.mapped_bits.set(static_cast<std::size_t>(slot), shard.mapped.contains(slot));
    }
  }
  if (!changed) return;
  for (auto& [id, p] : partitions_) {
    std::erase_if(p.places, [this](const auto& it) { return !shards_.contains(it.first); });
    tell_nodes(p.marks);
  }
}

bool ShardTurns::steady(const ShardedPartition& partition, const std::string& node,
                        const ShardInTurn& shard) const {
  if (shard.epoch == 0) return false;
  // It needs no mark, and nobody writes there.
  if (shard.look.self.owned.empty() && shard.mapped.empty()) return true;
  return partition.marks.counts(node, shard.epoch, partition.marks.stamp());
}

// Whether it is not the shard's fault that its marks are not confirmed yet: Kafka has still to say
// whether those that were found are about this log, or another shard's marks are not read yet.
bool ShardTurns::waits_for_answers(const std::string& node) const {
  return std::ranges::any_of(partitions_, [&node](const auto& it) {
    const ShardedPartition& p = it.second;
    if (p.left_behind) return false;
    const auto place = p.places.find(node);
    return (place != p.places.end() && place->second.ticket != 0) || p.marks.waits_for_others(node);
  });
}

void ShardTurns::judge_partition(ShardedPartition& p, Clock::time_point now) const {
  const bool waits = waits_for_kafka(p);
  if (!waits) p.asking_since.reset();
  if (waits && !p.asking_since) p.asking_since = now;
  const bool too_long = p.asking_since && now - *p.asking_since >= options_.patience;
  // Once left behind, it stays so until its marks are confirmed: otherwise shards would be judged
  // by marks that cannot be confirmed yet, and all partitions would wait once more.
  p.left_behind = too_long || (p.left_behind && !ready(p));
}

// The partitions by whose marks shards are judged: those that are not left behind. If all are,
// those whose marks wait for no answer of Kafka any more, because whether a shard takes marks only
// written marks can show.
std::vector<const ShardedPartition*> ShardTurns::witnesses() const {
  std::vector<const ShardedPartition*> well;
  std::vector<const ShardedPartition*> answered;
  for (const auto& [id, p] : partitions_) {
    if (!p.left_behind) well.push_back(&p);
    if (!waits_for_kafka(p)) answered.push_back(&p);
  }
  return well.empty() ? answered : well;
}

void ShardTurns::judge_shards(Clock::time_point now) {
  for (auto& [id, p] : partitions_) judge_partition(p, now);
  const std::vector<const ShardedPartition*> witnesses = this->witnesses();
  away_.set();
  for (auto& [node, shard] : shards_) {
    if (partitions_.empty()) {  // then no shard is asked anything
      shard.unsteady_since = now;
      shard.steady = shard.away = false;
      away_ &= ~shard.mapped_bits;
      continue;
    }
    if (witnesses.empty() && shard.epoch != 0) {  // well or away, as it was before
      shard.unsteady_since = now;
      if (!shard.away) away_ &= ~shard.mapped_bits;
      continue;
    }
    const bool steady_now =
        shard.epoch != 0 && std::ranges::all_of(witnesses, [this, &node = node, &shard = shard](
                                                               const ShardedPartition* p) {
          return steady(*p, node, shard);
        });
    if (steady_now && !shard.steady) shard.steady_since = now;
    if (!steady_now && shard.steady) {
      shard.unsteady_since = now;
      shard.away = now - shard.steady_since < kWell;
    }
    shard.steady = steady_now;
    if (waits_for_answers(node)) shard.unsteady_since = now;
    if (steady_now && std::exchange(shard.away, false)) {
      report(LogLevel::kInfo,
             shard.mapped.empty()
                 ? fmt::format("master {} without slots: it answers", shard.address)
                 : fmt::format("shard {}: its marks are confirmed again", shard.address));
    }
    if (!steady_now && !shard.away && now - shard.unsteady_since >= options_.patience) {
      shard.away = true;
      for (auto& [id, p] : partitions_) p.marks.lost(node);
      report(LogLevel::kWarning, shard.mapped.empty() ? without_slots(shard.address, shard.why)
                                                      : put_off(shard.address, shard.why));
    }
    if (shard.away) continue;
    away_ &= ~shard.mapped_bits;
  }
}

bool ShardTurns::ready(const ShardedPartition& partition) const {
  bool some = false;
  for (const auto& [node, shard] : shards_) {
    if (shard.away) continue;
    if (!steady(partition, node, shard)) return false;
    some = some || !shard.mapped.empty();
  }
  return some;
}

bool ShardTurns::all_read(const ShardedPartition& partition) const {
  return std::ranges::all_of(shards_, [&](const auto& it) {
    return it.second.mapped.empty() || partition.marks.was_read(it.first);
  });
}

bool ShardTurns::all_known(const ShardedPartition& partition) const {
  return ready(partition) && std::ranges::none_of(shards_, [](const auto& it) {
           return it.second.away && !it.second.mapped.empty();
         });
}

bool ShardTurns::told(const ShardedPartition& partition) const {
  return std::ranges::all_of(shards_, [&](const auto& it) {
    const auto& [node, shard] = it;
    if (shard.mapped.empty()) return true;
    if (!steady(partition, node, shard)) return false;
    const auto confirmed = partition.marks.confirmed(node);
    return confirmed && says_missing(*confirmed, partition.marks.missing());
  });
}

ShardTurns::Clock::time_point ShardTurns::compared(const ShardedPartition& partition) const {
  std::optional<Clock::time_point> earliest;
  for (const auto& [node, shard] : shards_) {
    if (shard.away || shard.mapped.empty()) continue;
    const auto place = partition.places.find(node);
    if (place == partition.places.end() || !steady(partition, node, shard)) return {};
    earliest = std::min(earliest.value_or(place->second.compared), place->second.compared);
  }
  return earliest.value_or(Clock::time_point{});
}

SlotSet ShardTurns::unknown(const ShardedPartition& partition) const {
  SlotSet slots = SlotSet::all();
  if (!partition.known) return slots;
  for (const auto& [node, shard] : shards_) {
    const bool read = partition.marks.was_read_over(node, shard.epoch);
    if (!shard.away && read) slots -= shard.mapped;
  }
  return slots;
}

bool ShardTurns::waiting() const {
  bool some = false;
  for (const auto& [node, shard] : shards_) {
    if (shard.away) continue;
    if (!shard.steady) return true;
    some = some || !shard.mapped.empty();
  }
  return !some;
}

bool ShardTurns::settled(const ShardedPartition& partition) const {
  return std::ranges::all_of(shards_, [&](const auto& it) {
    const auto& [node, shard] = it;
    if (!steady(partition, node, shard) || shard.look.self.owned.empty()) return true;
    const auto confirmed = partition.marks.confirmed(node);
    if (!confirmed || confirmed->position < partition.position) return false;
    if (!says_missing(*confirmed, partition.marks.missing())) return false;
    // A mark that still has gaps which were filled meanwhile would make the next updater fill them
    // again.
    return confirmed->gaps.empty() || !partition.marks.missing().empty();
  });
}

SlotSet ShardTurns::slots_with(std::uint16_t slot) const {
  for (const auto& [node, shard] : shards_) {
    if (shard.mapped.contains(slot)) return shard.mapped | SlotSet(slot, slot);
  }
  return {slot, slot};
}

const std::string* ShardTurns::node_of(std::uint64_t epoch) const noexcept {
  for (const auto& [node, shard] : shards_) {
    if (epoch != 0 && shard.epoch == epoch) return &node;
  }
  return nullptr;
}

std::string ShardTurns::trouble() const {
  std::string lines;
  for (const auto& [node, shard] : shards_) {
    // One without slots is trouble only when it has been asked in vain for a while.
    if (shard.steady || (shard.mapped.empty() && !shard.away)) continue;
    if (!lines.empty()) lines += '\n';
    lines += shard.mapped.empty()
                 ? without_slots(shard.address, shard.why)
                 : fmt::format("shard {}: its marks are not confirmed: {}", shard.address,
                               shard.why.empty() ? "not yet" : shard.why);
  }
  return lines;
}

std::size_t ShardTurns::shards_away() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(shards_, [](const auto& it) { return it.second.away; }));
}

// --- Turns.

void ShardTurns::tick(Clock::time_point now, Instant wall_now) {
  follow_nodes(now);
  if (!partitions_.empty()) {
    for (auto& [node, shard] : shards_) tick_shard(node, shard, now, wall_now);
  }
  const bool some_slots =
      std::ranges::any_of(shards_, [](const auto& it) { return !it.second.mapped.empty(); });
  for (auto& [id, p] : partitions_) p.known = p.known || (some_slots && all_read(p));
  judge_shards(now);
  hurry_ = false;
}

void ShardTurns::tick_shard(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                            Instant wall_now) {
  if (shard.call) {
    if (!shard.call->ended()) return;
    const std::shared_ptr<NodeCall> call = std::exchange(shard.call, nullptr);
    take_answers(node, shard, *call, now, wall_now);
    if (shard.call) return;
  }
  const std::uint64_t epoch = shard_port_->node_epoch(shard.number);
  if (shard.epoch != 0 && epoch != shard.epoch) {
    lose(node, shard, now, "its connection was lost or renewed");
    shard.due = now;
  }
  if (now >= shard.due || (hurry_ && shard.failures == 0)) begin_look(shard);
}

void ShardTurns::take_answers(const std::string& node, ShardInTurn& shard, const NodeCall& call,
                              Clock::time_point now, Instant wall_now) {
  const TurnPhase phase = std::exchange(shard.phase, TurnPhase::kIdle);
  if (!call.answered()) {
    if (phase == TurnPhase::kWriting) take_written(node, shard, call);
    return lose(node, shard, now, "it does not answer: " + shard_port_->last_error());
  }
  switch (phase) {
    case TurnPhase::kIdle:
      return;
    case TurnPhase::kConnecting:
      shard.due = now;
      return;
    case TurnPhase::kLooking:
      return take_look(node, shard, call, now, wall_now);
    case TurnPhase::kReading:
      if (take_read(node, shard, call)) return begin_write(node, shard, now, wall_now);
      ++shard.failures;
      return end_turn(shard, now);
    case TurnPhase::kWriting:
      take_written(node, shard, call);
      if (!shard.call) end_turn(shard, now);
      return;
  }
}

void ShardTurns::lose(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                      std::string why) {
  shard.epoch = 0;
  shard.look = {};
  shard.why = std::move(why);
  shard.phase = TurnPhase::kIdle;
  ++shard.failures;
  for (auto& [id, p] : partitions_) {
    p.marks.lost(node);
    ShardedPartition::MarksInShard& place = p.places[node];
    place.ticket = 0;
    place.usable.reset();
    place.unanswered = false;
  }
  end_turn(shard, now);
}

void ShardTurns::end_turn(ShardInTurn& shard, Clock::time_point now) {
  if (shard.failures == 0) {
    shard.due = now + options_.interval;
    return;
  }
  const auto doublings = std::min(shard.failures, std::uint32_t{6}) - 1;
  shard.due = now + std::min<Clock::duration>(kAgainAfter * (1U << doublings), kAgainAfterMax);
}

void ShardTurns::begin_look(ShardInTurn& shard) {
  shard.call = NodeCall::make();
  shard.call->add({"CLUSTER", "NODES"});
  shard.call->add({"INFO", "replication"});
  shard.call_epoch = shard_port_->node_epoch(shard.number);
  // A node that was never connected has no epoch yet: the first call connects it.
  const bool connected = shard.call_epoch != 0;
  shard.phase = connected ? TurnPhase::kLooking : TurnPhase::kConnecting;
  shard.call->send(*shard_port_, shard.number,
                   connected ? std::optional(shard.call_epoch) : std::nullopt, options_.deadline);
}

void ShardTurns::take_look(const std::string& node, ShardInTurn& shard, const NodeCall& call,
                           Clock::time_point now, Instant wall_now) {
  const auto& answers = call.answers();
  for (const NodeCall::NodeAnswer& answer : answers) {
    if (answer.is_error()) return lose(node, shard, now, answer.text);
  }
  auto look = read_node_look(answers[0].text, answers[1].text);
  if (!look) return lose(node, shard, now, "CLUSTER NODES or INFO was not understood");
  if (!look->is_master || look->self.node != node) {
    return lose(node, shard, now, "the node at its address is not the shard's master any more");
  }
  if (shard.epoch != shard.call_epoch) shard.knows_script = false;
  shard.epoch = shard.call_epoch;
  shard.look = std::move(*look);
  for (auto& [id, p] : partitions_) p.marks.looked(shard.look.self, shard.epoch);
  begin_read(node, shard, now, wall_now);
}

}  // namespace fcap::updater
