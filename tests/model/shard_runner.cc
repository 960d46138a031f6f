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
  auto& texts = texts_[master.node];
  texts = ShardWorld::marks_in(master, partition_);
  std::vector<MarkValue> found;
  for (const auto& [slot, text] : texts) found.push_back(*decode_mark(text));
  marks_.found(master.node, master.epoch, found, marks_.look_of(master.node));
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
  for (const MarkValue& copy : copies_of(*mark)) {
    const auto outcome = put(master, copy.shard->places.front(), encode_mark(copy));
    if (outcome != ShardWorld::Write::kDone) return marks_.doubtful(master.node);
  }
  marks_.written(master.node, master.epoch);
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

}  // namespace fcap::updater::testing
