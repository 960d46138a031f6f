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
      marks_(0, next, ShardWorld::all()) {}

std::int64_t ShardRunner::position() const {
  std::int64_t lowest = next_;
  for (const Sent& sent : live_) lowest = std::min(lowest, sent.event);
  return lowest;
}

void ShardRunner::step(std::int64_t log_end) {
  marks_.set_nodes(world_.nodes());
  for (int turns = 0; turns < 3; ++turns) turn();
  if (chance(70)) take(log_end);
  write_live();
  settle_live();
  fill();
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
  constexpr std::int64_t kSegment = 20;
  if (!fill_) {
    const auto segment = marks_.segment(position(), kSegment);
    if (segment) fill_ = Fill{*segment, marks_.stamp(), segment->offsets.from};
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
  Place& place = places_[master.node];
  place.texts = ShardWorld::marks_in(master, partition_);
  place.home = -1;
  std::vector<MarkValue> found;
  for (const auto& [slot, text] : place.texts) found.push_back(*decode_mark(text));
  const auto own = mark_of_shard(ShardWorld::look(master), found);
  for (const auto& [slot, text] : place.texts) {
    if (own && decode_mark(text) == own) place.home = slot;
  }
  marks_.found(master.node, master.epoch, found);
}

ShardWorld::Write ShardRunner::put(ShardWorld::Master& master, int slot, const std::string& text) {
  Place& place = places_[master.node];
  if (around_.fault(4)) return ShardWorld::Write::kFailed;
  const auto known = place.texts.find(slot);
  const auto expected =
      known == place.texts.end() ? std::nullopt : std::optional<std::string>(known->second);
  const auto outcome = ShardWorld::exchange(master, {slot, partition_}, expected, text);
  if (outcome != ShardWorld::Write::kDone) return outcome;
  if (around_.fault(4)) return ShardWorld::Write::kFailed;
  place.texts[slot] = text;
  return outcome;
}

void ShardRunner::write_mark(ShardWorld::Master& master) {
  const auto mark = marks_.to_write(master.node, position());
  if (!mark) return;
  Place& place = places_[master.node];
  int highest = -1;
  for (int slot = 0; slot < ShardWorld::kSlots; ++slot) {
    if (master.owned.contains(slot) && !master.migrating.contains(slot)) highest = slot;
  }
  if (place.home < 0) place.home = highest;
  if (place.home < 0 || !move_home(master, highest, *mark)) return marks_.doubtful(master.node);
  marks_.written(master.node, master.epoch);
}

// Only the mark where it is shows that the shard has lost nothing. So where it will be, something
// that claims nothing comes first; if that is still there after the mark was written once more, it
// becomes the mark.
bool ShardRunner::move_home(ShardWorld::Master& master, int to, const MarkValue& mark) {
  Place& place = places_[master.node];
  const auto done = ShardWorld::Write::kDone;
  const std::string text = encode_mark(mark);
  const bool leaving = master.migrating.contains(place.home) && to >= 0;
  MarkValue nothing{.position = 0};
  nothing.shard = {mark.shard->node, mark.shard->replication, false, 0, {}, {}};
  const bool prepared = leaving && put(master, to, encode_mark(nothing)) == done;
  if (put(master, place.home, text) != done) return false;
  if (prepared && put(master, to, text) == done) place.home = to;
  return true;
}

}  // namespace fcap::updater::testing
