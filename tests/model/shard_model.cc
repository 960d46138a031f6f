#include "shard_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater::testing {
namespace {

constexpr int kUsersOfASlot = 2;
constexpr std::chrono::milliseconds kStep{60};

// The first `count` events.
ShardWorld::Events first(std::int64_t count) {
  const auto most = static_cast<std::int64_t>(ShardWorld::kEventsMax);
  const auto rest = static_cast<std::size_t>(most - std::clamp<std::int64_t>(count, 0, most));
  return ~ShardWorld::Events{} >> rest;
}

}  // namespace

ShardModel::ShardModel(std::uint64_t seed, const ShardModelOptions& options)
    : options_(options),
      random_(seed),
      world_(options.masters, options.partitions, random_),
      partitions_(static_cast<std::size_t>(options.partitions)),
      of_first_(world_.masters().front().owned) {
  for (Partition& partition : partitions_) start(partition);
  produce();
  heal();
  for (Partition& partition : partitions_) {
    partition.committed = partition.runner->position();
    start(partition);
  }
  heal();
  written_again_ = {};
  rewritten_ = 0;
  too_far_ = 0;
  begun_ = true;
}

void ShardModel::run() {
  faults_ = options_.faults;
  for (int i = 0; i < options_.steps; ++i) step();
}

void ShardModel::step() {
  ++steps_;
  now_ += kStep;
  if (chance(40)) produce();
  world_.tick();
  for (const auto& node : world_.nodes()) {
    if (chance(10)) world_.sync_replica(*world_.find(node));
    if (chance(2)) world_.take_snapshot(*world_.find(node));
  }
  if (world_.moving() && chance(30)) world_.go_on_moving();
  if (chance(5)) world_.mend_move();
  for (Partition& partition : partitions_) {
    if (!partition.runner && --partition.down_for <= 0) start(partition);
    if (partition.runner && chance(80)) partition.runner->step(end_of(partition), now_);
    if (partition.zombie) partition.zombie->step(end_of(partition), now_);
    if (partition.zombie && chance(5)) partition.zombie.reset();
    if (partition.runner && chance(10)) partition.committed = partition.runner->position();
  }
  if (options_.first_away && steps_ == options_.steps / 4) {
    say("the first master goes away");
    world_.go_away(*world_.find(world_.masters().front().node), std::numeric_limits<int>::max());
  }
  if (random_() % 1000 < options_.trouble_of_1000) some_trouble();
  look_at_statement();
  if (steps_ % 10 == 0) look_for_false_claims();
}

void ShardModel::look_for_false_claims() {
  for (int slot = 0; slot < ShardWorld::kSlots; ++slot) {
    if (false_claim_ || !world_.claimed_and_gone(slot)) continue;
    false_claim_ = true;
    say(fmt::format("a mark claims more of slot {} than there is", slot));
  }
}

// Nobody knows of a shard that falls back to older data before its marks are compared; and if it
// holds `!config`, what that says is older, too, until the updaters have seen it.
void ShardModel::note_losses(bool emptied, const ShardWorld::Data& before, const SlotSet& owned) {
  if (before.config) stated_.clear();
  for (const auto& [user, events] : before.users) {
    if (!owned.contains(ShardWorld::slot_of(user))) continue;
    if (!emptied) {
      lost_.erase(user);
      stated_.erase(user);
      continue;
    }
    lost_[user] |= events;
    if (before.config) {
      stated_[user] |= events;
    } else {
      stated_[user] &= ~events;
      stated_before_[user] = checker_.lost_before();
    }
  }
}

void ShardModel::look_at_statement() {
  const auto* const holder = world_.config_holder();
  if (holder == nullptr) return;
  const auto& config = holder->data.config;
  checker_.look(config ? &*config : nullptr);
  for (auto& [user, lost] : lost_) {
    lost &= ~world_.events_of(user);
    auto& stated = stated_[user];
    stated &= lost;
    const auto slot = static_cast<std::uint16_t>(ShardWorld::slot_of(user));
    const Instant since = checker_.complete_since(slot);
    const auto said = since == redis::kAnyEvent
                          ? first(ShardWorld::kEventsMax)
                          : first((since - ShardConfig::time_of(0)) / std::chrono::milliseconds{1});
    if (!too_early_ && (stated & ~said).any()) {
      say(fmt::format("events of user {} in slot {} are missing, and !config is {}", user, slot,
                      config.value_or("gone")));
      too_early_ = true;
    }
    // What stood when it was lost is about something else.
    if (!checker_.lost_before() || checker_.lost_before() == stated_before_[user]) continue;
    events_stated_ += (lost & said & ~stated).count();
    stated |= lost & said;
  }
  std::erase_if(lost_, [](const auto& it) { return it.second.none(); });
}

void ShardModel::produce() {
  Partition& partition = partitions_[static_cast<std::size_t>(any(partitions_.size()))];
  const auto index = static_cast<int>(&partition - partitions_.data());
  for (auto n = random_() % 8; n > 0 && partition.log.size() + 1 < ShardWorld::kEventsMax; --n) {
    const int slot = any(ShardWorld::kSlots);
    const int which = any(kUsersOfASlot) * options_.partitions + index;
    partition.log.push_back(which * ShardWorld::kSlots + slot);
  }
}

void ShardModel::start(Partition& partition) {
  // What all marks claim will not be read again.
  std::int64_t floor = partition.committed;
  const auto index = static_cast<int>(&partition - partitions_.data());
  for (const auto& master : world_.masters()) {
    const auto mark = ShardWorld::own_mark(master, index);
    if (!master.owned.empty()) floor = std::min(floor, mark ? mark->complete_below() : 0);
  }
  partition.floor = floor;
  ShardRunner::Around around;
  around.user_of = [&partition](std::int64_t event) {
    return partition.log[static_cast<std::size_t>(event)];
  };
  around.wrote_again = [this, &partition](int user, std::int64_t event) {
    const int slot = ShardWorld::slot_of(user);
    written_again_ |= SlotSet(slot, slot);
    ++rewritten_;
    if (event < partition.floor) ++too_far_;
  };
  around.partitions = options_.partitions;
  around.log_end = [this] {
    std::int64_t longest = 0;
    for (const Partition& p : partitions_) longest = std::max(longest, end_of(p));
    return longest;
  };
  around.fault = [this](unsigned percent) { return faults_ && chance(percent); };
  partition.runner =
      std::make_unique<ShardRunner>(world_, random_, index, partition.committed, around);
}

void ShardModel::stop(Partition& partition) {
  if (!partition.runner) return;
  slots_restarted_ += begun_ ? partition.runner->marks().slots_restarted() : 0;
  partition.runner.reset();
}

void ShardModel::some_trouble() {
  std::vector<void (ShardModel::*)()> kinds;
  if (options_.losses || options_.flickers) kinds.push_back(&ShardModel::trouble_with_a_master);
  if (options_.moves) kinds.push_back(&ShardModel::move_slots);
  const auto dice = random_() % (kinds.size() + 2);
  if (dice < kinds.size()) return (this->*kinds[dice])();
  Partition& partition = partitions_[static_cast<std::size_t>(any(partitions_.size()))];
  if (options_.zombies && partition.runner && !partition.zombie && chance(50)) {
    say("a partition goes to another updater, which its first one does not know");
    partition.zombie = std::move(partition.runner);
    start(partition);
  } else if (options_.crashes) {
    partition.down_for = chance(50) ? 0 : any(60);
    say(fmt::format("an updater crashes, for {} steps", partition.down_for));
    stop(partition);
  }
}

void ShardModel::trouble_with_a_master() {
  const auto& masters = world_.masters();
  const std::size_t which = options_.first_only ? 0 : static_cast<std::size_t>(any(masters.size()));
  ShardWorld::Master& master = *world_.find(masters[which].node);
  const std::string node = master.node;
  if (options_.flickers && (!options_.losses || chance(30))) {
    if (options_.first_away) return;
    say(node + " cannot be reached");
    return world_.go_away(master, 1 + any(60));
  }
  if (!options_.losses) return;
  const int kind = any(4);
  bool done = false;
  const ShardWorld::Data before = master.data;
  const SlotSet owned = master.owned;
  if (kind <= 1) done = world_.fail_over(master);
  if (kind == 2) done = world_.empty(master);
  if (kind == 3) done = world_.restore(master);
  if (!done) return;
  ++losses_;
  note_losses(kind == 2, before, owned);
  say(fmt::format("{} {}", node,
                  kind <= 1   ? "fails over to " + masters[which].node
                  : kind == 2 ? "is emptied"
                              : "is restored from a snapshot"));
}

// Whether without this slot nothing would show that its master has lost nothing.
bool ShardModel::holds_the_only_copy(int slot) const {
  for (const auto& master : world_.masters()) {
    if (!master.owned.contains(slot)) continue;
    for (int partition = 0; partition < options_.partitions; ++partition) {
      const auto mark = ShardWorld::own_mark(master, partition);
      if (!mark) continue;
      const auto& places = mark->shard->places;
      const auto stays = [&](int place) {
        return place != slot && master.owned.contains(place) && !master.migrating.contains(place);
      };
      if (std::ranges::none_of(places, stays)) return true;
    }
  }
  return false;
}

void ShardModel::move_slots() {
  if (options_.adds_masters && world_.masters().size() < 5 && chance(20)) {
    world_.add_master();
    say("a master is added: " + world_.masters().back().node);
    return;
  }
  const auto nodes = world_.nodes();
  const std::string& to = nodes[static_cast<std::size_t>(any(nodes.size()))];
  for (int n = 1 + any(3); n > 0; --n) {
    const int slot = any(ShardWorld::kSlots);
    // While no updater runs, a mark cannot be taken elsewhere before its slots leave.
    if (!options_.losses && holds_the_only_copy(slot)) continue;
    say(fmt::format("slot {} begins to move to {}", slot, to));
    world_.begin_move(slot, to);
  }
}

void ShardModel::heal() {
  faults_ = false;
  for (const auto& node : world_.nodes()) world_.come_back(*world_.find(node));
  for (Partition& partition : partitions_) partition.zombie.reset();
  for (int i = 0; i < 5000 && (i < 20 || world_.moving() || !came_to_rest()); ++i) {
    now_ += kStep;
    world_.go_on_moving();
    world_.mend_move();
    for (Partition& partition : partitions_) {
      if (!partition.runner) start(partition);
      partition.runner->step(end_of(partition), now_);
    }
    look_at_statement();
  }
  for (const Partition& partition : partitions_) {
    slots_restarted_ += begun_ ? partition.runner->marks().slots_restarted() : 0;
  }
}

void ShardModel::settle_without_the_first() {
  faults_ = false;
  for (int i = 0; i < 1000; ++i) {
    now_ += kStep;
    for (Partition& partition : partitions_) {
      if (!partition.runner) start(partition);
      partition.runner->step(end_of(partition), now_);
    }
  }
}

bool ShardModel::others_marked() const {
  return std::ranges::all_of(partitions_, [this](const Partition& partition) {
    return std::ranges::all_of(world_.masters(), [&](const auto& master) {
      const auto mark = partition.runner->marks().confirmed(master.node);
      const bool others = &master != &world_.masters().front();
      return !others || (mark && mark->position == end_of(partition) && mark->gaps.empty());
    });
  });
}

bool ShardModel::came_to_rest() const {
  return checker_.all_complete() &&
         std::ranges::all_of(partitions_, [this](const Partition& partition) {
           return partition.runner && partition.runner->at_rest(end_of(partition));
         });
}

std::size_t ShardModel::missing(const SlotSet& of) const {
  std::size_t count = 0;
  for (const Partition& partition : partitions_) {
    for (std::size_t event = 0; event < partition.log.size(); ++event) {
      const int user = partition.log[event];
      if (!of.contains(ShardWorld::slot_of(user))) continue;
      if (!world_.has(user, static_cast<std::int64_t>(event))) ++count;
    }
  }
  return count;
}

std::size_t ShardModel::events() const noexcept {
  std::size_t count = 0;
  for (const Partition& partition : partitions_) count += partition.log.size();
  return count;
}

void ShardModel::say(std::string_view what) {
  constexpr std::size_t kLines = 60;
  if (too_early_) return;
  if (story_.size() >= kLines) story_.pop_front();
  story_.push_back(fmt::format("step {}: {}", steps_, what));
}

std::string ShardModel::story() const {
  std::string all;
  for (const std::string& line : story_) all += "\n  " + line;
  for (const auto& master : world_.masters()) {
    all += fmt::format("\n{} owns {}, migrates {}, imports {}", master.node, master.owned.text(),
                       master.migrating.size(), master.importing.size());
    for (const auto& [place, text] : master.data.marks) {
      all += fmt::format("\n  slot {}, partition {}: {}", place.first, place.second, text);
    }
  }
  return all;
}

}  // namespace fcap::updater::testing
