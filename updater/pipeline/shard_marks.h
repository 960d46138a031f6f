#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "updater/marks/mark_value.h"
#include "updater/marks/missing_offsets.h"
#include "updater/marks/slot_set.h"
#include "updater/pipeline/rewind.h"

namespace fcap::updater {

/// What the master of a shard says of itself, over the connection that its marks are read and
/// written on.
struct ShardLook {
  std::string node;
  std::string replication;  ///< the id of its replication history
  std::string former = {};  ///< the history that this one continues, if it knows
  SlotSet owned = {};
  SlotSet migrating = {};  ///< owned; some of their keys may be on another master
  SlotSet importing = {};  ///< another's; some of their keys may be here
};

/// The mark that a shard's data set holds: of those found there, the newest that was written to
/// this shard. The others came with slots that have moved here, ahead of the keys of other slots.
[[nodiscard]] std::optional<MarkValue> mark_of_shard(const ShardLook& look,
                                                     std::span<const MarkValue> found);

/// A partition's marks in the shards of a Redis Cluster: what each may say, for the users of which
/// slots, and what must be read again for whom. Pure: all I/O is its caller's.
///
/// A shard is asked (looked()), its marks are read (found()) where must_read(), and a mark is
/// written (to_write(), written() or doubtful()), in turns, all over one connection; a turn starts
/// again when the connection changes. What holds:
/// - A shard's mark speaks for slots whose keys had all arrived before it was written, so wherever
///   the shard's data goes, the mark is preceded by the keys.
/// - A slot that arrived is named by its new owner's mark when all other shards' marks were found
///   unharmed after that, and if no shard can have lost something of it on its way; otherwise all
///   of the retention is missing for it. Its former owner's mark names it until the new owner's
///   does.
/// - Whatever is missing for a slot is in a gap of every mark that names it.
///
/// Not thread-safe.
class ShardMarks {
 public:
  /// `next`: the first offset that will be read live. `all`: the slots of the cluster.
  ShardMarks(std::int64_t retention_start, std::int64_t next, SlotSet all = SlotSet::all());

  /// The masters that there are now, by their ids, those that cannot be reached included.
  void set_nodes(std::span<const std::string> nodes);

  /// `epoch`: grows when a connection to the node is made or lost.
  void looked(const ShardLook& look, std::uint64_t epoch);
  /// Whether the shard's marks must be read before one is written.
  [[nodiscard]] bool must_read(const std::string& node) const;
  /// Every mark of this partition in the shard's data set.
  void found(const std::string& node, std::uint64_t epoch, std::span<const MarkValue> marks);
  /// The next mark of a shard, where everything below `position` is done or given up. nullopt: not
  /// before it was asked and its marks were read, and not if it has no slots.
  [[nodiscard]] std::optional<MarkValue> to_write(const std::string& node, std::int64_t position);
  void written(const std::string& node, std::uint64_t epoch);
  /// A mark was not written, or nobody knows whether it was.
  void doubtful(const std::string& node);
  /// The connection to a shard was lost: nothing counts and no segment is its own before the next
  /// mark.
  void lost(const std::string& node);

  /// Offsets below `next` have been read live.
  void taken(std::int64_t next) noexcept { next_ = next; }
  /// When something is sent.
  [[nodiscard]] std::uint64_t stamp() const noexcept { return clock_; }
  /// Whether what was sent at `stamp` and acknowledged over the connection `epoch` counts: the
  /// shard's mark was confirmed there before.
  [[nodiscard]] bool counts(const std::string& node, std::uint64_t epoch,
                            std::uint64_t stamp) const;
  /// Live events of these users were not acknowledged, or their acknowledgement does not count.
  void give_up(const SlotSet& slots, Gap offsets) { missing_.add(slots, offsets); }

  /// The newest offsets below `position` that are missing for users of shards which can take them;
  /// at most `offsets_max`.
  struct Segment {
    SlotSet slots;
    Gap offsets;
  };
  [[nodiscard]] std::optional<Segment> segment(std::int64_t position,
                                               std::int64_t offsets_max) const;
  /// Everything of a segment that was begun at `stamp` was acknowledged, and counts, for the users
  /// of these slots. It stays missing where something was lost meanwhile.
  void filled(const SlotSet& slots, Gap offsets, std::uint64_t stamp);

  [[nodiscard]] const MissingOffsets& missing() const noexcept { return missing_; }
  /// Whether every shard has a mark of this position that names its slots and has no gap.
  [[nodiscard]] bool settled(std::int64_t position) const;
  /// For how many slots all of the retention had to be read again.
  [[nodiscard]] std::size_t slots_restarted() const noexcept { return slots_restarted_; }
  /// The mark of a shard as last read or confirmed.
  [[nodiscard]] std::optional<MarkValue> confirmed(const std::string& node) const;

 private:
  struct Shard {
    ShardLook look;
    bool seen = false;
    bool compared = false;             // its marks were read over this connection
    std::uint64_t epoch = 0;           // of the look
    std::uint64_t compared_epoch = 0;  // 0: never
    std::uint64_t looked_at = 0;
    std::uint64_t checked_at = 0;    // the look after which its mark was last found unharmed
    std::uint64_t confirmed_at = 0;  // and when that was
    std::uint64_t arrivals_at = 0;   // when the last slot was seen to have arrived
    std::uint64_t migrating_at = 0;  // when the last slot was seen to migrate
    std::uint64_t unsafe_since = 0;
    std::uint64_t steady = 0;  // since when its mark is confirmed on this connection; 0: it is not
    std::optional<MarkValue> confirmed;
    std::optional<MarkValue> attempted;
    SlotSet named;                 // in its next mark
    SlotSet partly;                // named when some of their keys were elsewhere, not taken in yet
    SlotSet arrivals;              // owned, and not named yet
    std::string safe_replication;  // the history in which no arrival can have been lost
    [[nodiscard]] bool safe() const { return seen && safe_replication == look.replication; }
  };
  using Shards = std::map<std::string, Shard>;

  void lack(const SlotSet& slots, const Gaps& gaps);
  void lose(Shard& shard, const std::optional<MarkValue>& own, bool reconnected);
  void restart(const SlotSet& slots);
  void doubt(SlotSet slots);
  void judge();
  bool judge_moving();
  void judge_arrivals(Shard& shard);
  [[nodiscard]] SlotSet named_by_owner(const Shard& but) const;
  [[nodiscard]] bool all_slots_owned() const;
  [[nodiscard]] bool all_checked_after(const Shard& shard, std::uint64_t stamp) const;
  void make_safe(Shard& shard);
  [[nodiscard]] std::uint64_t next_serial(const Shard& shard);

  std::int64_t retention_start_;
  std::int64_t next_;
  SlotSet all_;
  Shards shards_;
  MissingOffsets missing_;
  SlotSet doubted_;               // moving, and everything is missing
  std::uint64_t doubted_at_ = 0;  // when the last slot was doubted
  struct Loss {
    std::uint64_t stamp = 0;
    SlotSet slots;
  };
  std::deque<Loss> losses_;             // the last ones
  std::uint64_t losses_forgotten_ = 0;  // the newest that is not among them
  std::uint64_t highest_serial_ = 0;    // of all marks that were seen or written
  std::uint64_t clock_ = 1;
  std::size_t slots_restarted_ = 0;
};

}  // namespace fcap::updater
