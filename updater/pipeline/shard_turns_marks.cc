// How turns with shards read and write marks.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "redis/slot_tags.h"
#include "redis/store_operations.h"
#include "updater/marks/gaps.h"
#include "updater/marks/log_look.h"
#include "updater/marks/mark_value.h"
#include "updater/pipeline/shard_turns.h"

namespace fcap::updater {
namespace {

// A request of one command would follow a redirect, and not report it.
void add_second(NodeCall& call) {
  if (call.size() == 1) call.add({"PING"});
}

// The sum over all slots. It grows whenever more is missing for some of them, also where the same
// offsets were missing for others before.
std::int64_t sum_missing(const ShardMarks& marks) {
  std::int64_t sum = 0;
  for (const MissingOffsets::MissingStretch& stretch : marks.missing().stretches()) {
    sum += offsets_in(stretch.gaps) * static_cast<std::int64_t>(stretch.slots.size());
  }
  return sum;
}

// ShardMarks knows nothing of logs.
MarkValue without_log(MarkValue mark) {
  mark.log = {};
  return mark;
}

// What mark_of_shard() has given, with its log.
MarkValue with_log(const ShardedPartition::MarksInShard& place, const MarkValue& own) {
  for (const auto& [slot, text] : place.texts) {
    auto mark = decode_mark(text);
    if (!mark || !mark->shard) continue;
    std::ranges::sort(mark->shard->places);
    if (without_log(*mark) == own) return *mark;
  }
  return own;
}

// Whether Kafka's answer about the log of `place.asked` holds for this mark's log, too. It does if
// the same would be asked again. It also does if the mark names a message that shows it and has not
// fallen: then its writer has read on in that log. Whether the log has been recreated since the
// answer, no answer can say: the looks at what is read find that out (LogWatch).
bool is_answered(const ShardedPartition::MarksInShard& place, const MarkValue& mark) {
  if (!place.usable) return false;
  const MarkValue& asked = *place.asked;
  if (mark.log == asked.log && mark.position == asked.position) return true;
  if (mark.log.cluster != asked.log.cluster || mark.position < asked.position) return false;
  return std::ranges::any_of(points_of(mark.log), [&place](const LogPoint& point) {
    return std::ranges::find(place.shown_by, point) != place.shown_by.end();
  });
}

}  // namespace

const SlotSet& ShardTurns::mark_slots() {
  static const SlotSet slots = [] {
    std::bitset<SlotSet::kSlots> bits;
    for (std::size_t slot = kPlaceEvery - 1; slot < bits.size(); slot += kPlaceEvery) {
      bits.set(slot);
    }
    return SlotSet::of(bits);
  }();
  return slots;
}

std::string ShardTurns::key(int slot, const ShardedPartition& p) const {
  return tagged_mark_key(options_.key_prefix, redis::tag_of_slot(static_cast<std::uint16_t>(slot)),
                         p.key_behind);
}

void ShardTurns::begin_read(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                            Instant wall_now) {
  shard.jobs.clear();
  std::vector<std::int32_t> whose;
  for (auto& [id, p] : partitions_) {
    if (p.marks.must_read(node) && p.places[node].ticket == 0) whose.push_back(id);
  }
  auto call = NodeCall::make();
  const ShardLook& look = shard.look.self;
  const auto add = [&](MarkCommand job) {
    std::vector<std::string> keys;
    for (const std::int32_t id : job.partitions) keys.push_back(key(job.slot, partitions_.at(id)));
    std::vector<std::string_view> words = {"MGET"};
    words.insert(words.end(), keys.begin(), keys.end());
    call->add(words);
    shard.jobs.push_back(std::move(job));
  };
  for (int slot = kPlaceEvery - 1; slot < SlotSet::kSlots && !whose.empty(); slot += kPlaceEvery) {
    if (!look.owned.contains(slot)) continue;
    if (!look.migrating.contains(slot)) {
      add({.partitions = whose, .slot = slot});
      continue;
    }
    // Some of these keys may be here and others not. To an MGET of several, Redis would answer
    // TRYAGAIN, which gives none of them.
    for (const std::int32_t id : whose) {
      add({.partitions = {id}, .slot = slot, .migrating = true});
    }
  }
  for (const std::int32_t id : whose) {
    ShardedPartition& p = partitions_.at(id);
    p.places[node].texts.clear();
    p.places[node].look = p.marks.look_of(node);
  }
  if (call->size() == 0) {
    for (const std::int32_t id : whose) settle_read(id, partitions_.at(id), node, shard);
    return begin_write(node, shard, now, wall_now);
  }
  add_second(*call);
  shard.phase = TurnPhase::kReading;
  shard.call_epoch = shard.epoch;
  shard.call = std::move(call);
  shard.call->send(*shard_port_, shard.number, shard.epoch, options_.deadline);
}

// False: some mark could not be read, and none counts as read.
bool ShardTurns::take_read(const std::string& node, ShardInTurn& shard, const NodeCall& call) {
  std::map<std::int32_t, bool> whose;
  for (std::size_t i = 0; i < shard.jobs.size(); ++i) {
    const MarkCommand& job = shard.jobs[i];
    const NodeCall::NodeAnswer& answer = call.answers()[i];
    for (const std::int32_t id : job.partitions) whose[id] = true;
    if (answer.is_error() && job.migrating && answer.text.starts_with("ASK ")) continue;
    if (answer.elements.size() != job.partitions.size()) {
      shard.why = "a mark cannot be read: " + answer.text;
      return false;
    }
    for (std::size_t k = 0; k < job.partitions.size(); ++k) {
      ShardedPartition* const p = find(job.partitions[k]);
      if (p != nullptr && answer.elements[k]) {
        p->places[node].texts[job.slot] = *answer.elements[k];
      }
    }
  }
  for (const auto& [id, read] : whose) {
    if (ShardedPartition* const p = find(id)) settle_read(id, *p, node, shard);
  }
  return true;
}

void ShardTurns::settle_read(std::int32_t id, ShardedPartition& p, const std::string& node,
                             const ShardInTurn& shard) {
  ShardedPartition::MarksInShard& place = p.places[node];
  std::vector<MarkValue> found;
  for (const auto& [slot, text] : place.texts) {
    const auto mark = decode_mark(text);
    if (mark && mark->shard) found.push_back(without_log(*mark));
    if (!mark && !std::exchange(p.no_mark_said, true)) {
      report(LogLevel::kWarning, no_mark_text(key(slot, p)));
    }
  }
  const auto own = mark_of_shard(shard.look.self, found);
  place.unanswered = false;
  // A mark that this process has not written may be a restored one, of a log that no longer exists.
  // The answer takes a while, and the shard is asked on: what was read by then says nothing of what
  // happened since. So the marks are read again. They need not be the same: an updater that was
  // evicted from its group, but reaches Redis, may write its mark all the time.
  if (own && !p.marks.is_ours(node, *own)) {
    MarkValue mark = with_log(place, *own);
    if (!is_answered(place, mark)) {
      place.usable.reset();
      place.ticket = ask_log_(id, mark);
      place.asked = std::move(mark);
      place.unanswered = place.ticket != 0;
      if (place.unanswered) return;
    }
    // A mark about another log claims no offset of this one. Which slots it names and how new it is
    // still counts.
    if (place.usable == false) {
      for (MarkValue& other : found) {
        other.position = 0;
        other.gaps.clear();
      }
    }
  }
  accept(id, p, node, shard, found);
  // What is found later needs an answer of its own.
  if (!p.marks.must_read(node)) place.usable.reset();
}

bool ShardTurns::judged(std::int32_t id, std::uint64_t ticket, std::optional<bool> usable,
                        std::vector<LogPoint> shown_by) {
  ShardedPartition* const p = find(id);
  if (p == nullptr) return false;
  for (auto& [node, place] : p->places) {
    if (place.ticket != ticket) continue;
    place.ticket = 0;
    place.usable = usable;
    place.shown_by = std::move(shown_by);
    place.unanswered = !usable;
    const auto shard = shards_.find(node);
    if (usable && shard != shards_.end() && shard->second.epoch != 0) shard->second.due = {};
    return true;
  }
  return false;
}

void ShardTurns::accept(std::int32_t id, ShardedPartition& p, const std::string& node,
                        const ShardInTurn& shard, const std::vector<MarkValue>& found) {
  const std::int64_t before = sum_missing(p.marks);
  const bool known = p.marks.confirmed(node).has_value();
  p.marks.found(node, shard.epoch, found, p.places[node].look);
  if (sum_missing(p.marks) <= before) return;
  if (known) metrics_->mark_losses.add();
  const auto own = p.marks.confirmed(node);
  if (!own && (known || p.committed)) marks_gone_ |= shard.look.self.owned;
  const std::int64_t missing = offsets_in(p.marks.missing().of(shard.look.self.owned));
  const std::string again = missing != 0
                                ? fmt::format("{} offsets are read again for its users", missing)
                                : "offsets are read again for the users of slots on the move";
  report(LogLevel::kWarning,
         fmt::format("partition {}: shard {} may lack events ({}): {}", id, shard.address,
                     own ? fmt::format("its mark: {}", own->position) : "it has no mark", again));
}

bool ShardTurns::is_due(const ShardedPartition& p, const std::string& node,
                        const ShardInTurn& shard, Clock::time_point now) const {
  const auto place = p.places.find(node);
  if (place == p.places.end() || now >= place->second.due || !steady(p, node, shard)) return true;
  const auto confirmed = p.marks.confirmed(node);
  // The next updater takes a mark that does not say `arrivals_safe` for a loss, so it is written
  // again until it can.
  return !confirmed || confirmed->position != p.position || !confirmed->shard->arrivals_safe ||
         confirmed->shard->slots != shard.look.self.owned || !confirmed->gaps.empty() ||
         !p.marks.missing().empty();
}

void ShardTurns::begin_write(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                             Instant wall_now) {
  shard.jobs.clear();
  shard.later.clear();
  shard.expire_at_ms = to_ms(wall_now + options_.marks_live);
  for (auto& [id, p] : partitions_) {
    if (p.marks.must_read(node) || !is_due(p, node, shard, now)) continue;
    std::optional<MarkValue> mark = p.marks.to_write(node, p.position);
    if (!mark) {
      shard.why = "its marks wait for those of the other shards, or no slot can take them";
      continue;
    }
    p.places[node].due = now + options_.idle_interval;
    p.places[node].begun = now;
    mark->log = p.log;
    std::size_t before = 0;
    for (const MarkValue& copy : copies_of(*mark)) {
      auto& jobs = before == 0 ? shard.jobs : shard.later;
      jobs.push_back({.partitions = {id},
                      .slot = copy.shard->places.front(),
                      .text = encode_mark(copy),
                      .is_last = ++before == mark->shard->places.size()});
    }
  }
  if (shard.jobs.empty()) {
    shard.failures = 0;
    return end_turn(shard, now);
  }
  send_writes(shard);
}

// Sends the writes that are in `jobs`, as one call.
void ShardTurns::send_writes(ShardInTurn& shard) {
  shard.call = NodeCall::make();
  for (const MarkCommand& job : shard.jobs)
    add_write(shard, partitions_.at(job.partitions.front()), job);
  add_second(*shard.call);
  shard.phase = TurnPhase::kWriting;
  shard.call_epoch = shard.epoch;
  shard.call->send(*shard_port_, shard.number, shard.epoch, options_.deadline);
}

void ShardTurns::add_write(ShardInTurn& shard, const ShardedPartition& p, const MarkCommand& job) {
  const auto& texts = p.places.at(shard.look.self.node).texts;
  const auto known = texts.find(job.slot);
  const bool exists = known != texts.end();
  const std::string where = key(job.slot, p);
  const std::string until = std::to_string(shard.expire_at_ms);
  const bool whole = !std::exchange(shard.knows_script, true);
  shard.call->add({whole ? "EVAL" : "EVALSHA",
                   whole ? redis::compare_and_set_script() : redis::compare_and_set_sha(), "1",
                   where, exists ? "1" : "0", exists ? std::string_view(known->second) : "",
                   job.text, until, "0"});
}

// Whether a copy is there now.
bool ShardTurns::take_copy(ShardInTurn& shard, ShardedPartition::MarksInShard& place,
                           const MarkCommand& job, const NodeCall::NodeAnswer& answer,
                           bool answered) {
  if (answered && answer.kind == redis::Reply::Kind::kInteger && answer.integer == 1) {
    if (job.text.empty()) {
      place.texts.erase(job.slot);
    } else {
      place.texts[job.slot] = job.text;
    }
    return true;
  }
  if (answer.text.starts_with("NOSCRIPT")) shard.knows_script = false;
  if (answer.is_error()) shard.why = "a mark cannot be written: " + answer.text;
  return false;
}

// Deletes the copies of older marks that lie in this shard once there is a newer one. If such a
// copy stayed, its slot could bring it back to its shard, and it would speak for that shard again.
void ShardTurns::remove_obsolete(std::int32_t id, const ShardedPartition& p,
                                 const std::string& node, ShardInTurn& shard) {
  const auto own = p.marks.confirmed(node);
  for (const auto& [slot, text] : p.places.at(node).texts) {
    const auto mark = decode_mark(text);
    if (!mark || !mark->shard || !own) continue;
    if (std::ranges::find(own->shard->places, slot) != own->shard->places.end()) continue;
    if (p.marks.is_obsolete(node, *mark)) shard.later.push_back({.partitions = {id}, .slot = slot});
  }
}

void ShardTurns::take_written(const std::string& node, ShardInTurn& shard, const NodeCall& call) {
  for (std::size_t i = 0; i < shard.jobs.size(); ++i) {
    const MarkCommand& job = shard.jobs[i];
    const std::int32_t id = job.partitions.front();
    ShardedPartition* const p = find(id);
    if (p == nullptr) continue;
    ShardedPartition::MarksInShard& place = p->places[node];
    if (take_copy(shard, place, job, call.answers()[i], call.answered())) {
      if (!job.is_last) continue;
      p->marks.written(node, shard.epoch);
      place.compared = place.begun;
      metrics_->marks_written.add();
      remove_obsolete(id, *p, node, shard);
      continue;
    }
    // A copy is written only after the one before it, so the other copy of this mark is dropped.
    std::erase_if(shard.later,
                  [id](const MarkCommand& other) { return other.partitions.front() == id; });
    p->marks.doubtful(node);
    shard.doubts = true;
    metrics_->mark_failures.add();
  }
  shard.jobs = std::exchange(shard.later, {});
  if (!shard.jobs.empty() && call.answered()) return send_writes(shard);
  shard.failures = std::exchange(shard.doubts, false) ? shard.failures + 1 : 0;
}

}  // namespace fcap::updater
