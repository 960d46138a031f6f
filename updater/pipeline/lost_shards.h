#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <fcap/store.h>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// Finds shards of a Redis Cluster that have begun empty while nobody noticed.
///
/// A partition has marks in all shards, which together speak for all slots. Where some are there
/// and others are not, a shard has lost its data. Owners of partitions notice that by themselves,
/// but a group gives the partitions of a member that was killed to another one only after its
/// session, and none while Kafka is away. So every updater looks for the marks of the topic's first
/// partition: at the start, after each connection to Redis, and every 10 s. Marks that move with
/// their slots, or are being written, may be missed once, so that only two looks in a row count. A
/// look says nothing if some slot could not be read, or has a value that is no mark; nor if there
/// are no marks at all, because then the topic is new.
///
/// Thread safety: one thread. Never blocks. The store must outlive it; a look that is under way at
/// destruction ends by itself.
class LostShards {
 public:
  using Clock = std::chrono::steady_clock;

  LostShards(Store& store, std::string_view key_prefix, std::string_view group_id,
             std::string_view topic);
  ~LostShards();
  LostShards(const LostShards&) = delete;
  LostShards& operator=(const LostShards&) = delete;

  /// Does what is due. `connections` grows with each connection to Redis. Returns the slots that
  /// were found to be lost since the last call, once per connection.
  [[nodiscard]] SlotSet tick(Clock::time_point now, std::uint64_t connections);

  /// The slots for which none of these marks speaks. A mark counts if all its copies were found: a
  /// copy may have moved away with its slot before its shard was emptied.
  [[nodiscard]] static SlotSet without_mark(std::span<const MarkValue> found);

 private:
  class MarksLook;

  [[nodiscard]] SlotSet take(const MarksLook& look, Clock::time_point now);

  Store* store_;
  std::string key_prefix_;
  std::string whose_;
  std::shared_ptr<MarksLook> look_;  // under way, or ended and not processed yet
  Clock::time_point look_at_{};
  std::uint64_t connections_ = 0;
  SlotSet suspected_;  // by the last look
  SlotSet told_;       // since the connection
};

}  // namespace fcap::updater
