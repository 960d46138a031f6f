#include "shard_world.h"

#include <algorithm>

namespace fcap::updater::testing {

ShardWorld::ShardWorld(int masters, int partitions, std::mt19937_64& random)
    : random_(random), partitions_(partitions) {
  for (int i = 0; i < masters; ++i) {
    add_master();
    masters_.back().owned = SlotSet(i * kSlots / masters, (i + 1) * kSlots / masters - 1);
  }
}

void ShardWorld::add_master() {
  Master master;
  master.node = new_id('n');
  master.replication = new_id('r');
  masters_.push_back(std::move(master));
}

ShardLook ShardWorld::look(const Master& master) {
  ShardLook look{master.node, master.replication, master.former, master.owned, {}, {}};
  for (const auto& [slot, to] : master.migrating) look.migrating |= SlotSet(slot, slot);
  for (const auto& [slot, from] : master.importing) look.importing |= SlotSet(slot, slot);
  return look;
}

ShardWorld::Master* ShardWorld::find(const std::string& node) {
  const auto found = std::ranges::find(masters_, node, &Master::node);
  return found == masters_.end() ? nullptr : &*found;
}

std::vector<std::string> ShardWorld::nodes() const {
  std::vector<std::string> all;
  for (const Master& master : masters_) all.push_back(master.node);
  return all;
}

// While two say that they own it, clients ask the former one.
const ShardWorld::Master* ShardWorld::owner_of(int slot) const {
  const Master* owner = nullptr;
  for (const Master& master : masters_) {
    if (!master.owned.contains(slot)) continue;
    if (owner == nullptr || master.migrating.contains(slot)) owner = &master;
  }
  return owner;
}

std::optional<ShardWorld::Ack> ShardWorld::write(int user, std::int64_t event) {
  const int slot = slot_of(user);
  Master* master = owner_of(slot);
  if (master == nullptr || master->away_for > 0) return std::nullopt;
  const auto moving = master->migrating.find(slot);
  if (moving != master->migrating.end() && !master->data.users.contains(user)) {
    master = find(moving->second);
    if (master == nullptr || master->away_for > 0) return std::nullopt;
    if (!master->importing.contains(slot) && !master->owned.contains(slot)) return std::nullopt;
  }
  master->data.users[user].set(static_cast<std::size_t>(event));
  written_[user].set(static_cast<std::size_t>(event));
  return Ack{master->node, master->epoch};
}

std::map<int, std::string> ShardWorld::marks_in(const Master& master, int partition) {
  std::map<int, std::string> marks;
  for (const auto& [place, text] : master.data.marks) {
    if (place.second == partition && master.owned.contains(place.first)) marks[place.first] = text;
  }
  return marks;
}

std::optional<MarkValue> ShardWorld::own_mark(const Master& master, int partition) {
  std::vector<MarkValue> marks;
  for (const auto& [slot, text] : marks_in(master, partition)) marks.push_back(*decode_mark(text));
  return mark_of_shard(look(master), marks);
}

ShardWorld::Write ShardWorld::exchange(Master& master, std::pair<int, int> place,
                                       const std::optional<std::string>& expected,
                                       const std::string& desired) {
  if (master.away_for > 0 || !master.owned.contains(place.first)) return Write::kFailed;
  const auto there = master.data.marks.find(place);
  const bool exists = there != master.data.marks.end();
  if (!exists && master.migrating.contains(place.first)) return Write::kFailed;
  if (exists != expected.has_value() || (exists && there->second != *expected)) {
    return Write::kConflict;
  }
  if (desired.empty()) {
    master.data.marks.erase(place);
  } else {
    master.data.marks[place] = desired;
  }
  return Write::kDone;
}

ShardWorld::Master* ShardWorld::config_holder() {
  Master* master = owner_of(kConfigSlot);
  if (master == nullptr || master->away_for > 0) return nullptr;
  const auto moving = master->migrating.find(kConfigSlot);
  if (moving == master->migrating.end() || master->data.config) return master;
  master = find(moving->second);
  return master == nullptr || master->away_for > 0 ? nullptr : master;
}

const ShardWorld::Events& ShardWorld::events_of(int user) const {
  static const Events kNone;
  const Master* master = owner_of(slot_of(user));
  if (master == nullptr) return kNone;
  const auto moving = master->migrating.find(slot_of(user));
  if (moving != master->migrating.end() && !master->data.users.contains(user)) {
    const auto target = std::ranges::find(masters_, moving->second, &Master::node);
    if (target != masters_.end()) master = &*target;
  }
  const auto found = master->data.users.find(user);
  return found == master->data.users.end() ? kNone : found->second;
}

void ShardWorld::tick() {
  for (Master& master : masters_) {
    if (master.away_for > 0 && --master.away_for == 0) ++master.epoch;
  }
}

void ShardWorld::go_away(Master& master, int steps) {
  master.away_for = steps;
  ++master.epoch;
}

void ShardWorld::come_back(Master& master) {
  if (master.away_for > 0) ++master.epoch;
  master.away_for = 0;
}

ShardWorld::Data ShardWorld::copy_of_data(const Master& master) const {
  Data data = master.data;
  data.torn = {};
  for (int partition = 0; partition < partitions_; ++partition) {
    const auto mark = own_mark(master, partition);
    if (mark) data.torn |= mark->shard->slots - (master.owned - look(master).migrating);
  }
  return data;
}

// What nobody could notice must not be done: a slot that came back, or never left, without keys
// that were lost elsewhere, while a mark that claims them stands; or data of the moment when a
// slot's keys had begun to leave and no updater had looked.
template <typename Change>
bool ShardWorld::if_noticeable(const SlotSet& slots, Change&& change) {
  const std::vector<Master> before = masters_;
  change();
  for (int slot = 0; slot < kSlots; ++slot) {
    if (!slots.contains(slot) || !claimed_and_gone(slot)) continue;
    masters_ = before;
    return false;
  }
  return true;
}

bool ShardWorld::claimed_and_gone(int slot) const {
  const Master* owner = owner_of(slot);
  if (owner == nullptr || owner->migrating.contains(slot)) return false;
  for (int partition = 0; partition < partitions_; ++partition) {
    const auto mark = own_mark(*owner, partition);
    if (!mark || !mark->shard->slots.contains(slot)) continue;
    // Where two marks name it, the newer one speaks for it.
    const bool older = std::ranges::any_of(masters_, [&](const Master& other) {
      const auto newer = own_mark(other, partition);
      return newer && newer->shard->serial > mark->shard->serial &&
             (newer->shard->slots | newer->shard->partly).contains(slot);
    });
    if (older) continue;
    for (const auto& [user, events] : written_) {
      if (slot_of(user) != slot || partition_of(user) != partition) continue;
      for (std::int64_t event = 0; event < mark->position && event < kEventsMax; ++event) {
        const bool gap = std::ranges::any_of(
            mark->gaps, [event](const Gap& g) { return g.from <= event && event < g.to; });
        if (!gap && events.test(static_cast<std::size_t>(event)) && !has(user, event)) return true;
      }
    }
  }
  return false;
}

// A promoted replica has another id, knows nothing of slots on the move, and makes those that its
// master was importing an operator's business (mend_move()).
bool ShardWorld::fail_over(Master& master) {
  const SlotSet slots = look(master).migrating | master.replica.torn;
  const std::string node = master.node;
  return if_noticeable(slots, [&] {
    Master& failed = *find(node);
    end_moves(failed);
    failed.replaced = std::exchange(failed.node, new_id('n'));
    failed.former = std::exchange(failed.replication, new_id('r'));
    failed.data = failed.replica;
    failed.snapshot = failed.replica;
    failed.away_for = 0;
    ++failed.epoch;
    for (Master& other : masters_) {
      if (&other == &failed) continue;
      failed.owned -= other.owned;
    }
    // Moves out of it are rolled back at once.
    for (Master& other : masters_) {
      for (auto at = other.importing.begin(); at != other.importing.end();) {
        if (at->second != node) {
          ++at;
          continue;
        }
        for (auto& [user, events] : other.data.users) {
          if (slot_of(user) == at->first) failed.data.users.erase(user);
        }
        move_keys(other, failed, at->first);
        at = other.importing.erase(at);
      }
    }
  });
}

void ShardWorld::end_moves(Master& master) {
  master.migrating.clear();
  master.importing.clear();
}

bool ShardWorld::empty(Master& master) {
  // One that holds keys and no mark of its own yet cannot show that it lost them.
  for (int partition = 0; partition < partitions_; ++partition) {
    if (!master.data.users.empty() && !own_mark(master, partition)) return false;
  }
  master.data = {};
  return true;
}

bool ShardWorld::restore(Master& restored) {
  const std::string node = restored.node;
  return if_noticeable(restored.snapshot.torn, [&] { restart_from_snapshot(*find(node)); });
}

void ShardWorld::restart_from_snapshot(Master& master) {
  master.data = master.snapshot;
  // A master that starts takes no writes before it has heard from the others what they own.
  for (const Master& other : masters_) {
    if (&other == &master) continue;
    master.owned -= other.owned;
    std::erase_if(master.migrating, [&](const auto& it) { return other.owned.contains(it.first); });
  }
  // It gives up keys of slots that are others'.
  const auto foreign = [&master](int slot) {
    return !master.owned.contains(slot) && !master.importing.contains(slot);
  };
  std::erase_if(master.data.users, [&](const auto& it) { return foreign(slot_of(it.first)); });
  std::erase_if(master.data.marks, [&](const auto& it) { return foreign(it.first.first); });
  if (foreign(kConfigSlot)) master.data.config.reset();
  master.former = any(2) == 0 ? master.replication : std::string();
  master.replication = new_id('r');
  master.replica = master.data;
  ++master.epoch;
}

void ShardWorld::begin_move(int slot, const std::string& to) {
  Master* source = owner_of(slot);
  Master* target = find(to);
  if (source == nullptr || target == nullptr || source == target) return;
  if (source->migrating.contains(slot) || target->owned.contains(slot)) return;
  target->importing[slot] = source->node;
  source->migrating[slot] = target->node;
}

bool ShardWorld::move_a_key(Master& from, Master& to, int slot) {
  for (auto user = from.data.users.begin(); user != from.data.users.end(); ++user) {
    if (slot_of(user->first) != slot) continue;
    to.data.users[user->first] = user->second;
    from.data.users.erase(user);
    return true;
  }
  if (slot == kConfigSlot && from.data.config) {
    to.data.config = std::exchange(from.data.config, std::nullopt);
    return true;
  }
  for (auto mark = from.data.marks.begin(); mark != from.data.marks.end(); ++mark) {
    if (mark->first.first != slot) continue;
    to.data.marks[mark->first] = mark->second;
    from.data.marks.erase(mark);
    return true;
  }
  return false;
}

bool ShardWorld::moving() const {
  return std::ranges::any_of(masters_, [](const Master& m) { return !m.migrating.empty(); });
}

void ShardWorld::go_on_moving() {
  for (Master& source : masters_) {
    if (source.migrating.empty()) continue;
    const auto [slot, to] = *source.migrating.begin();
    Master* target = find(to);
    if (target == nullptr) continue;
    if (!target->owned.contains(slot)) {
      if (!target->importing.contains(slot)) continue;
      if (move_a_key(source, *target, slot)) return;
      const SlotSet one(slot, slot);
      const std::string node = source.node;
      const bool both = any(3) == 0;
      const bool done = if_noticeable(one, [&, slot = slot, to = to] {
        Master& new_owner = *find(to);
        new_owner.importing.erase(slot);
        new_owner.owned |= one;
        find(node)->owned -= one;
        find(node)->migrating.erase(slot);
      });
      if (!done) return;
      ++moved_;
      if (!both) return;
      // Its former owner has not heard of it yet.
      find(node)->owned |= one;
      find(node)->migrating[slot] = to;
      return;
    }
    source.owned -= SlotSet(slot, slot);
    source.migrating.erase(slot);
    return;
  }
}

void ShardWorld::mend_move() {
  for (Master& source : masters_) {
    for (const auto& [slot, to] : source.migrating) {
      const Master* target = find(to);
      if (target != nullptr && (target->importing.contains(slot) || target->owned.contains(slot))) {
        continue;
      }
      const SlotSet one(slot, slot);
      const auto at = static_cast<std::size_t>(&source - masters_.data());
      const auto other = static_cast<std::size_t>(any(masters_.size()));
      if (other == at || masters_[other].owned.contains(slot)) return;
      if (masters_[other].replaced == to) {
        masters_[other].importing[slot] = source.node;
        source.migrating[slot] = masters_[other].node;
      } else {
        const int stable = slot;
        (void)if_noticeable(one, [&] {
          for (Master& holder : masters_) {
            if (&holder == &masters_[at]) continue;
            // What is there already is newer than what an earlier move has left behind.
            std::erase_if(holder.data.users, [&](const auto& it) {
              return slot_of(it.first) == stable && masters_[at].data.users.contains(it.first);
            });
            move_keys(holder, masters_[at], stable);
          }
          masters_[at].migrating.erase(stable);
        });
      }
      return;
    }
  }
}

}  // namespace fcap::updater::testing
