#pragma once

// A Redis Cluster in memory that does what clusters do, for the model of marks per shard. Masters
// own slots and have replicas that lag behind; slots migrate key by key, and get their new owner
// after their last key; masters fail over, are emptied, are restored from snapshots, and cannot be
// reached for a while.
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "updater/pipeline/shard_marks.h"

namespace fcap::updater::testing {

class ShardWorld {
 public:
  static constexpr int kSlots = 12;
  static constexpr int kEventsMax = 1024;  // of a partition
  static constexpr int kConfigSlot = 5;
  using Events = std::bitset<kEventsMax>;

  /// What a master holds: the events of users, and marks by slot and partition.
  struct Data {
    std::map<int, Events> users;
    std::map<std::pair<int, int>, std::string> marks;
    std::optional<std::string> config;  // in its slot
    SlotSet torn = {};  // in a copy: keys were elsewhere, and a mark did not say so yet
  };
  struct Master {
    std::string node;
    std::string replication;
    std::string former;
    std::string replaced;     // the node whose replica it was
    std::uint64_t epoch = 1;  // of the connections to it
    int away_for = 0;         // steps for which it cannot be reached
    Data data;
    Data replica;
    Data snapshot;
    SlotSet owned;
    std::map<int, std::string> migrating;  // and to whom
    std::map<int, std::string> importing;  // and from whom
  };
  struct Ack {
    std::string node;
    std::uint64_t epoch = 0;
  };
  enum class Write : std::uint8_t { kDone, kConflict, kFailed };

  ShardWorld(int masters, int partitions, std::mt19937_64& random);

  [[nodiscard]] static SlotSet all() { return {0, kSlots - 1}; }
  [[nodiscard]] static int slot_of(int user) { return user % kSlots; }
  [[nodiscard]] int partition_of(int user) const { return user / kSlots % partitions_; }
  [[nodiscard]] static ShardLook look(const Master& master);
  [[nodiscard]] const std::vector<Master>& masters() const noexcept { return masters_; }
  [[nodiscard]] Master* find(const std::string& node);
  [[nodiscard]] std::vector<std::string> nodes() const;

  /// Writes an event as a client does that follows redirects. nullopt: not executed.
  std::optional<Ack> write(int user, std::int64_t event);
  /// The marks of a partition that a master holds in its own slots.
  [[nodiscard]] static std::map<int, std::string> marks_in(const Master& master, int partition);
  /// The one of those that was written to this master.
  [[nodiscard]] static std::optional<MarkValue> own_mark(const Master& master, int partition);
  /// Replaces a mark in one of the master's slots, without following redirects.
  static Write exchange(Master& master, std::pair<int, int> place,
                        const std::optional<std::string>& expected, const std::string& desired);
  /// Who holds `!config`, or would take it, for a client that follows redirects; null: it cannot be
  /// reached.
  [[nodiscard]] Master* config_holder();
  /// Whether the owner of the user's slot has the event.
  [[nodiscard]] bool has(int user, std::int64_t event) const {
    return events_of(user).test(static_cast<std::size_t>(event));
  }
  /// Those that the owner of the user's slot has, or has moved away with the user already.
  [[nodiscard]] const Events& events_of(int user) const;

  /// Whether a mark of the slot's owner claims an event that the owner lacks.
  [[nodiscard]] bool claimed_and_gone(int slot) const;

  void tick();
  void sync_replica(Master& master) { master.replica = copy_of_data(master); }
  void take_snapshot(Master& master) { master.snapshot = copy_of_data(master); }
  bool fail_over(Master& master);
  bool empty(Master& master);
  bool restore(Master& master);
  void go_away(Master& master, int steps);
  void come_back(Master& master);
  void add_master();

  void begin_move(int slot, const std::string& to);
  /// One key, or the slot itself after the last one.
  void go_on_moving();
  /// A move whose target was replaced goes on with another one, or is rolled back.
  void mend_move();
  [[nodiscard]] bool moving() const;
  [[nodiscard]] std::size_t moved() const noexcept { return moved_; }

 private:
  [[nodiscard]] int any(std::size_t count) { return static_cast<int>(random_() % count); }
  [[nodiscard]] std::string new_id(char kind) { return kind + std::to_string(++ids_); }
  [[nodiscard]] const Master* owner_of(int slot) const;
  [[nodiscard]] Master* owner_of(int slot) {
    return const_cast<Master*>(std::as_const(*this).owner_of(slot));
  }
  static bool move_a_key(Master& from, Master& to, int slot);
  static void move_keys(Master& from, Master& to, int slot) {
    while (move_a_key(from, to, slot)) {
    }
  }
  [[nodiscard]] Data copy_of_data(const Master& master) const;
  template <typename Change>
  bool if_noticeable(const SlotSet& slots, Change&& change);
  void restart_from_snapshot(Master& master);
  void end_moves(Master& master);

  std::mt19937_64& random_;
  int partitions_;
  std::vector<Master> masters_;
  int ids_ = 0;
  std::size_t moved_ = 0;
  std::map<int, Events> written_;  // to whomever
};

}  // namespace fcap::updater::testing
