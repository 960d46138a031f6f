#include "shard_runner.h"

#include <algorithm>
#include <utility>

namespace fcap::updater::testing {

ShardRunner::ShardRunner(ShardWorld& world, std::mt19937_64& random, int partition,
                         std::int64_t next, Around around)
    : world_(world),
      random_(random),
      partition_(partition),
      next_(next),
      around_(std::move(around)),
      marks_(0, next, ShardWorld::all()),
      committed_(next > 0),
      config_(world, [this] { return around_.fault(5); }),
      publisher_(config_, ShardConfig::record(), {"g", "t"}, {}, {},
                 [this] { return config_.connection(); }) {}

std::int64_t ShardRunner::position() const {
  std::int64_t lowest = next_;
  for (const Sent& sent : live_) lowest = std::min(lowest, sent.event);
  return lowest;
}

void ShardRunner::step(std::int64_t log_end, Clock::time_point now) {
  now_ = now;
  marks_.set_nodes(world_.nodes());
  for (int turns = 0; turns < 3; ++turns) turn();
  if (chance(70)) take(log_end);
  write_live();
  settle_live();
  fill();
  publish();
}

void ShardRunner::take(std::int64_t log_end) {
  for (auto n = random_() % 5; n > 0 && next_ < log_end; --n, ++next_) {
    live_.push_back({next_, around_.user_of(next_), marks_.stamp()});
    marks_.taken(next_ + 1);
  }
}

void ShardRunner::write_live() {
  for (Sent& sent : live_) {
    if (sent.ack || chance(20) || around_.fault(10)) continue;
    sent.tried = true;
    sent.ack = world_.write(sent.user, sent.event);
    if (around_.fault(5)) sent.ack.reset();
  }
}

// Acknowledged, or given up.
void ShardRunner::settle_live() {
  std::erase_if(live_, [this](const Sent& sent) {
    if (!chance(60)) return false;
    if (sent.ack && marks_.counts(sent.ack->node, sent.ack->epoch, sent.stamp)) return true;
    if (!sent.ack && (!sent.tried || !chance(20))) return false;
    const int slot = ShardWorld::slot_of(sent.user);
    marks_.give_up(SlotSet(slot, slot), {sent.event, sent.event + 1});
    return true;
  });
}

void ShardRunner::fill() {
  constexpr std::int64_t kPiece = 20;
  if (!fill_) {
    const auto piece = marks_.piece(position(), kPiece);
    if (piece) fill_ = Fill{*piece, marks_.stamp(), piece->offsets.from};
    return;
  }
  for (int n = 0; n < 6 && fill_->next < fill_->what.offsets.to; ++n, ++fill_->next) {
    const int user = around_.user_of(fill_->next);
    if (!fill_->what.slots.contains(ShardWorld::slot_of(user))) continue;
    around_.wrote_again(user, fill_->next);
    Sent sent{fill_->next, user, fill_->stamp};
    if (!around_.fault(5)) sent.ack = world_.write(user, fill_->next);
    fill_->sent.push_back(std::move(sent));
  }
  if (fill_->next >= fill_->what.offsets.to && chance(60)) end_fill();
}

void ShardRunner::end_fill() {
  SlotSet done = fill_->what.slots;
  for (const Sent& sent : fill_->sent) {
    if (sent.ack && marks_.counts(sent.ack->node, sent.ack->epoch, sent.stamp)) continue;
    const int slot = ShardWorld::slot_of(sent.user);
    done -= SlotSet(slot, slot);
  }
  marks_.filled(done, fill_->what.offsets, fill_->stamp);
  // Otherwise something as new is still missing for the users of other slots.
  const MissingOffsets& missing = marks_.missing();
  if (missing.empty() || missing.of(SlotSet::all()).back().to <= fill_->what.offsets.from) {
    gap_times_.filled(partition_, fill_->what.offsets.from,
                      ShardConfig::time_of(fill_->what.offsets.to));
  }
  fill_.reset();
}

// The next operation with some shard: asking it, reading its marks, or writing one.
void ShardRunner::turn() {
  if (world_.masters().empty()) return;
  const auto& masters = world_.masters();
  ShardWorld::Master& master = *world_.find(masters[random_() % masters.size()].node);
  if (master.away_for > 0) marks_.lost(master.node);
  if (master.away_for > 0 || around_.fault(10)) {
    looked_.erase(master.node);
    return;
  }
  const auto looked = looked_.find(master.node);
  if (looked == looked_.end()) {
    marks_.looked(ShardWorld::look(master), master.epoch);
    looked_[master.node] = master.epoch;
    if (chance(30)) return;
  } else if (looked->second != master.epoch) {
    looked_.erase(looked);
    return;
  }
  if (marks_.must_read(master.node)) {
    read_marks(master);
    if (chance(30)) return;
  }
  write_mark(master);
  looked_.erase(master.node);
}

void ShardRunner::read_marks(ShardWorld::Master& master) {
  auto& texts = texts_[master.node];
  texts = ShardWorld::marks_in(master, partition_);
  std::vector<MarkValue> found;
  for (const auto& [slot, text] : texts) found.push_back(*decode_mark(text));
  // As ShardTurns does.
  const auto sum = [this] {
    std::int64_t all = 0;
    for (const auto& stretch : marks_.missing().stretches()) {
      all += offsets_in(stretch.gaps) * static_cast<std::int64_t>(stretch.slots.size());
    }
    return all;
  };
  const std::int64_t before = sum();
  const bool had_one = marks_.confirmed(master.node).has_value();
  marks_.found(master.node, master.epoch, found, marks_.look_of(master.node));
  const bool has_one = marks_.confirmed(master.node).has_value();
  if (sum() > before && !has_one && (had_one || committed_)) gone_ |= master.owned;
}

ShardWorld::Write ShardRunner::put(ShardWorld::Master& master, int slot, const std::string& text) {
  auto& texts = texts_[master.node];
  if (around_.fault(4)) return ShardWorld::Write::kFailed;
  const auto known = texts.find(slot);
  const auto expected =
      known == texts.end() ? std::nullopt : std::optional<std::string>(known->second);
  const auto outcome = ShardWorld::exchange(master, {slot, partition_}, expected, text);
  if (outcome != ShardWorld::Write::kDone) return outcome;
  if (around_.fault(4)) return ShardWorld::Write::kFailed;
  texts[slot] = text;
  return outcome;
}

void ShardRunner::write_mark(ShardWorld::Master& master) {
  const auto mark = marks_.to_write(master.node, position());
  if (!mark) return;
  const Clock::time_point begun = now_;
  for (const MarkValue& copy : copies_of(*mark)) {
    const auto outcome = put(master, copy.shard->places.front(), encode_mark(copy));
    if (outcome != ShardWorld::Write::kDone) return marks_.doubtful(master.node);
  }
  marks_.written(master.node, master.epoch);
  compared_[master.node] = begun;
  auto& texts = texts_[master.node];
  const auto known = texts;
  for (const auto& [slot, text] : known) {
    if (std::ranges::find(mark->shard->places, slot) != mark->shard->places.end()) continue;
    if (!marks_.is_obsolete(master.node, *decode_mark(text))) continue;
    if (around_.fault(4)) return marks_.doubtful(master.node);
    if (ShardWorld::exchange(master, {slot, partition_}, text, "") != ShardWorld::Write::kDone) {
      return marks_.doubtful(master.node);
    }
    texts.erase(slot);
  }
}

// --- What is stated, as ShardRecovery and ShardTurns tell it.

bool ShardRunner::is_confirmed(const ShardWorld::Master& master) const {
  return master.away_for == 0 && marks_.counts(master.node, master.epoch, marks_.stamp());
}

std::optional<GapEnd> ShardRunner::gap_end() const {
  if (!known_) return std::nullopt;
  SlotSet unknown = SlotSet::all();
  bool all_known = true;
  for (const auto& master : world_.masters()) {
    if (master.owned.empty()) continue;
    const bool read = marks_.was_read_over(master.node, master.epoch);
    if (master.away_for == 0 && read) unknown -= master.owned;
    all_known = all_known && is_confirmed(master);
  }
  unknown &= ShardWorld::all();
  const MissingOffsets& missing = marks_.missing();
  if (!missing.empty()) {
    return GapEnd{partition_, missing.of(SlotSet::all()).back().to, missing.slots() | unknown};
  }
  return all_known ? std::optional(GapEnd{.partition = partition_}) : std::nullopt;
}

void ShardRunner::publish() {
  MarkNews news{.partitions = around_.partitions,
                .gone = std::exchange(gone_, {}),
                .latest = ShardConfig::time_of(around_.log_end() + 1)};
  auto compared = Clock::time_point::max();
  bool all_read = true;
  for (const auto& master : world_.masters()) {
    news.connections += master.epoch;
    if (master.owned.empty()) continue;
    all_read = all_read && marks_.was_read(master.node);
    if (master.away_for > 0) continue;
    const auto at = compared_.find(master.node);
    const bool confirmed = at != compared_.end() && is_confirmed(master);
    compared = std::min(compared, confirmed ? at->second : Clock::time_point{});
  }
  known_ = known_ || all_read;
  if (compared != Clock::time_point::max()) news.compared[partition_] = compared;
  std::vector<GapEnd> ends;
  if (const auto end = gap_end()) ends.push_back(*end);
  gap_times_.look(ends, news.latest);
  publisher_.set_open_gaps(gap_times_.open_gaps());
  publisher_.set_marks(std::move(news));
  publisher_.tick(now_, ShardConfig::time_of(0));
}

}  // namespace fcap::updater::testing
