#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/slot_set.h"

namespace fcap::updater {

using redis::SlotSet;

/// A message that identifies a partition's log.
struct LogPoint {
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = -1;  ///< the broker's; -1: it has none
  std::uint64_t hash = 0;          ///< hash_message()

  friend bool operator==(const LogPoint&, const LogPoint&) = default;
};

/// The log that a mark is about.
struct LogIdentity {
  /// The Kafka cluster's id, as cluster_word() has it; empty: not known.
  std::string cluster = {};
  /// The last message delivered below the mark's position; if none was, an older one.
  std::optional<LogPoint> last = {};
  /// A message, not after `last`, that is more certain to be from this log: the newest one that the
  /// updater has looked for and found again, or the last one before a broker failed. Until there is
  /// such a message: one before the offset at which reading last started, or the first one read.
  std::optional<LogPoint> checked = {};

  friend bool operator==(const LogIdentity&, const LogIdentity&) = default;
};

/// Offsets [from, to) whose events may be missing.
struct Gap {
  std::int64_t from = 0;
  std::int64_t to = 0;

  friend bool operator==(const Gap&, const Gap&) = default;
};

/// Which shard of a Redis Cluster a mark was written to, and for which users it speaks.
struct MarkedShard {
  std::string node;         ///< the id of the shard's master when it was written
  std::string replication;  ///< the id of its replication history then
  /// Whether everything that came to the shard in this history, in slots that this mark does not
  /// name yet, is certain to be still there. If not, an updater that has no older knowledge of the
  /// shard treats it like one that has lost data.
  bool arrivals_safe = false;
  std::uint64_t serial = 0;  ///< grows with each mark of the shard
  /// The slots that hold its copies, at most two, the slot of this copy first.
  std::vector<int> places = {};
  SlotSet slots = {};  ///< whose users it speaks for
  /// Slots whose users it speaks for as well, although some or all of their keys were on another
  /// master when it was written.
  SlotSet partly = {};

  friend bool operator==(const MarkedShard&, const MarkedShard&) = default;
};

/// What a partition's mark says: every event below `position` that is in no gap has been executed
/// in this very data set. In a cluster it speaks for some users only (`shard`). docs/keys.md
/// defines its bytes.
struct MarkValue {
  static constexpr std::size_t kGapsMax = 8;

  std::int64_t position = 0;
  LogIdentity log = {};
  /// Ascending, apart from each other, below `position`; at most kGapsMax.
  std::vector<Gap> gaps = {};
  /// Only in a Redis Cluster.
  std::optional<MarkedShard> shard = {};

  /// Every event below it has been executed.
  [[nodiscard]] std::int64_t complete_below() const noexcept {
    return gaps.empty() ? position : gaps.front().from;
  }

  friend bool operator==(const MarkValue&, const MarkValue&) = default;
};

/// The value's bytes. It must be as described above.
[[nodiscard]] std::string encode_mark(const MarkValue& mark);

/// nullopt unless `text` is exactly what encode_mark() writes.
[[nodiscard]] std::optional<MarkValue> decode_mark(std::string_view text);

/// What the log says of a value at a mark's key that decode_mark() does not read.
[[nodiscard]] std::string no_mark_text(std::string_view key);

/// A cluster's id as a mark holds it: the id itself, or its hash if it is too long or has bytes
/// other than visible ASCII.
[[nodiscard]] std::string cluster_word(std::string_view cluster_id);

/// XXH3-64 of the payload, seeded with XXH3-64 of the key (an absent one is empty).
[[nodiscard]] std::uint64_t hash_message(std::string_view key, std::string_view payload) noexcept;

/// "<prefix>:!mark:{<tag>}:<whose>": of the marks, and of what a replay keeps beside them. The tag
/// puts the key into a slot of a Redis Cluster, where each shard has marks of its own
/// (docs/keys.md); without one it is "0".
[[nodiscard]] std::string tagged_mark_key(std::string_view prefix, std::string_view tag,
                                          std::string_view whose);
/// The key of a partition's mark where Redis is no cluster:
/// "<prefix>:!mark:{0}:<group>:<topic>:<partition>".
[[nodiscard]] std::string mark_key(std::string_view prefix, std::string_view group,
                                   std::string_view topic, std::int32_t partition);

}  // namespace fcap::updater
