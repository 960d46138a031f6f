#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "updater/marks/mark_value.h"
#include "updater/marks/missing_offsets.h"
#include "updater/pipeline/mark_places.h"
#include "updater/pipeline/rewind.h"

namespace fcap::updater {

/// A partition's marks in the shards of a Redis Cluster: what each may say, for the users of which
/// slots, and what must be read again for whom. Pure: all I/O is its caller's.
///
/// A shard is asked (looked()), its marks are read (found()) where must_read(), and a mark is
/// written (to_write(), written() or doubtful()), in turns, all over one connection; a turn starts
/// again when the connection changes. What holds:
/// - A shard's mark speaks for slots whose keys had all arrived before it was written, so wherever
///   the shard's data goes, the mark is preceded by the keys.
/// - When a slot has arrived at a shard, that shard's mark names it only after the marks of all
///   other shards were read once more and showed no loss: a shard through which the slot has passed
///   may have lost keys of it, which no mark would ever show. Until then its former owner's mark
///   goes on naming it, and all of the retention becomes missing for it whenever any shard is seen
///   to have lost something.
/// - Whatever is missing for a slot is in a gap of every mark that names it.
///
/// Not thread-safe.
class ShardMarks {
 public:
  /// `next`: the first offset that will be read live. `all`: the slots of the cluster. `places`:
  /// those in which marks may be; every updater of the partition has the same.
  ShardMarks(std::int64_t retention_start, std::int64_t next, SlotSet all = SlotSet::all(),
             SlotSet places = SlotSet::all());

  /// Offsets below this one do not count any more: Kafka says that their messages are older than
  /// the retention, or gone. The offset only rises; 0: not known.
  void raise_oldest(std::int64_t offset) noexcept { oldest_ = std::max(oldest_, offset); }

  /// Messages below have expired, so nobody can read again what is missing of them.
  void expired(std::int64_t below) {
    raise_oldest(below);
    missing_.remove(all_, {0, below});
  }

  /// The masters that there are now, by their ids, those that cannot be reached included.
  void set_nodes(std::span<const std::string> nodes);

  /// `epoch`: grows when a connection to the node is made or lost.
  void looked(const ShardLook& look, std::uint64_t epoch);
  /// Whether the shard's marks must be read before one is written.
  [[nodiscard]] bool must_read(const std::string& node) const;
  /// Whether the shard's marks were read at least once.
  [[nodiscard]] bool was_read(const std::string& node) const;
  /// Whether they were read over this connection. `epoch`: as in looked(), or 0: no connection.
  [[nodiscard]] bool was_read_over(const std::string& node, std::uint64_t epoch) const;
  /// The number of the last look at a shard; 0: none.
  [[nodiscard]] std::uint64_t look_of(const std::string& node) const;
  /// Every mark of this partition in the shard's data set, read after the look `look`. Ignored if
  /// there was a later one: what the shard lost before that look need not show in these marks.
  void found(const std::string& node, std::uint64_t epoch, std::span<const MarkValue> marks,
             std::uint64_t look);
  /// The next mark of a shard, where everything below `position` is done or given up; its
  /// copies_of() are to be written, each over what was there before, until one fails. nullopt: not
  /// before it was asked and its marks were read, and not if it has no slots that can take one. An
  /// updater's first mark of a shard also waits until all others' marks were read or they are
  /// lost().
  [[nodiscard]] std::optional<MarkValue> to_write(const std::string& node, std::int64_t position);
  /// Whether to_write() waits only for the marks of other shards.
  [[nodiscard]] bool waits_for_others(const std::string& node) const;
  /// All copies of the mark that to_write() gave were written.
  void written(const std::string& node, std::uint64_t epoch);
  /// One of these copies was not written, or nobody knows whether it was.
  void doubtful(const std::string& node);
  /// The connection to a shard was lost or cannot be made. Until its next mark is confirmed, no
  /// acknowledgement of the shard counts, and no piece is read for its users.
  void lost(const std::string& node);

  /// Offsets below `next` have been read live.
  void taken(std::int64_t next) noexcept { next_ = next; }
  /// The present stamp, to be kept with what is about to be sent; counts() compares it.
  [[nodiscard]] std::uint64_t stamp() const noexcept { return clock_; }
  /// Whether what was sent at `stamp` and acknowledged over the connection `epoch` counts: the
  /// shard's mark was confirmed there before.
  [[nodiscard]] bool counts(const std::string& node, std::uint64_t epoch,
                            std::uint64_t stamp) const;
  /// Live events of these users were not acknowledged, or their acknowledgement does not count.
  void give_up(const SlotSet& slots, Gap offsets) { missing_.add(slots, offsets); }
  /// What every shard has acknowledged since the start of the retention may be gone, what is being
  /// read again now included.
  void doubt() { lack(all_, {{retention_start_, next_}}); }

  /// The newest offsets below `position` that are missing for users of shards which can take them;
  /// at most `offsets_max`.
  struct MissingPiece {
    SlotSet slots;
    Gap offsets;
  };
  [[nodiscard]] std::optional<MissingPiece> piece(std::int64_t position,
                                                  std::int64_t offsets_max) const;
  /// Everything of a piece that was begun at `stamp` was acknowledged, and counts, for the users
  /// of these slots. It stays missing where something was lost meanwhile.
  void filled(const SlotSet& slots, Gap offsets, std::uint64_t stamp);

  [[nodiscard]] const MissingOffsets& missing() const noexcept { return missing_; }
  /// Whether every shard has a mark of this position that names its slots and has no gap.
  [[nodiscard]] bool settled(std::int64_t position) const;
  /// For tests: for how many slots all of the retention had to be read again.
  [[nodiscard]] std::size_t slots_restarted() const noexcept { return slots_restarted_; }
  /// The mark of a shard as last read or confirmed.
  [[nodiscard]] std::optional<MarkValue> confirmed(const std::string& node) const;
  /// `mark` was found in a slot of this shard, in none of the places of its own mark. Whether the
  /// shard that it was written to has a newer one by now. Then it is to be deleted: if its slot
  /// came back to that shard, it would speak for it again.
  [[nodiscard]] bool is_obsolete(const std::string& node, const MarkValue& mark) const;
  /// Whether it is the confirmed one, or may have been written since then.
  [[nodiscard]] bool is_ours(const std::string& node, const MarkValue& mark) const;

 private:
  struct ShardState {
    ShardLook look;
    bool seen = false;
    bool read = false;                 // its marks were read at least once
    bool compared = false;             // its marks were read over this connection
    bool awaited = true;               // its marks were not read yet, and it was not lost() either
    bool suspected = false;            // its marks show a loss, if what it owns is still the same
    bool begun = false;                // to_write() has given a mark for it
    std::uint64_t epoch = 0;           // of the look
    std::uint64_t compared_epoch = 0;  // 0: never
    std::uint64_t looked_at = 0;
    std::uint64_t checked_at = 0;    // the look after which its mark was last found unharmed
    std::uint64_t attempted_at = 0;  // when the last attempt was decided
    std::uint64_t told_at = 0;       // when the attempt that is now its mark was decided
    std::uint64_t arrivals_at = 0;   // when the last slot was seen to have arrived
    std::uint64_t unsafe_since = 0;  // when its marks last showed a loss
    std::uint64_t steady = 0;  // since when its mark is confirmed on this connection; 0: it is not
    std::optional<MarkValue> confirmed;
    // Since then, those that another updater began included; of each, any copy may have been
    // written.
    std::vector<MarkValue> attempts;
    bool writing = false;      // the last one
    std::uint64_t serial = 0;  // of the mark of another updater that its claims began with
    // The slots of the shard, by what is known of their keys. A slot that arrives is in `arrivals`,
    // and in `named` once nothing can have been lost on its way. When it leaves, or begins to, it
    // goes to `partly`: the mark still speaks for it, until its next owner's mark does.
    SlotSet named;                 // its next mark speaks for them; all of their keys were here
    SlotSet partly;                // named when some of their keys were elsewhere, not taken in yet
    SlotSet arrivals;              // owned, and not named yet
    SlotSet passed;                // were here in part since its mark was last found unharmed
    std::string safe_replication;  // the history in which no arrival can have been lost
    [[nodiscard]] bool attempted(const std::optional<MarkValue>& mark) const;
    [[nodiscard]] bool safe() const { return seen && safe_replication == look.replication; }
  };
  using Shards = std::map<std::string, ShardState>;

  void lack(const SlotSet& slots, const Gaps& gaps);
  void drop_older_claims(ShardState& shard);
  void take_over(ShardState& shard, const std::optional<MarkValue>& own);
  void something_was_lost();
  void name_what_is_here(ShardState& shard);
  void restart(const SlotSet& slots);
  [[nodiscard]] SlotSet moving() const;
  void review_arrivals();
  void name_arrivals(ShardState& shard);
  [[nodiscard]] SlotSet named_by_owner(const ShardState& but) const;
  [[nodiscard]] bool all_slots_owned() const;
  [[nodiscard]] bool all_checked_after(const ShardState& shard, std::uint64_t stamp) const;
  void make_safe(ShardState& shard);
  [[nodiscard]] bool some_awaited() const;
  [[nodiscard]] std::uint64_t next_serial(const ShardState& shard);

  std::int64_t retention_start_;
  std::int64_t oldest_ = 0;
  std::int64_t next_;
  SlotSet all_;
  SlotSet places_;
  Shards shards_;
  MissingOffsets missing_;
  std::uint64_t lost_at_ = 0;       // when it was last noticed that some shard had lost something
  std::uint64_t restarted_at_ = 0;  // when all of the retention last became missing for a slot
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
