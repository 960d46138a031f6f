#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// What the master of a shard says of itself, over the connection that its marks are read and
/// written on.
struct ShardLook {
  std::string node = {};
  std::string replication = {};  ///< the id of its replication history
  std::string former = {};       ///< the history that this one continues, if it knows
  SlotSet owned = {};
  SlotSet migrating = {};  ///< owned; some of their keys may be on another master
  SlotSet importing = {};  ///< another's; some of their keys may be here
};

/// A mark moves with its slot, and its slot may come back: to a shard that was emptied meanwhile,
/// or to a replica that has older data for all other slots. So each mark has two copies in slots
/// far apart, and each names the slots of both. A copy alone says nothing while the other slot is
/// there too.

/// Where the next mark of a shard goes, in the order of writing, given where its last one is. At
/// most one of two places changes, and it is written first: that the other copy can be replaced
/// then shows that the shard had lost nothing when the new one was written. New ones are chosen
/// from `allowed`. Empty: no slot can take it.
[[nodiscard]] std::vector<int> places_for_mark(const ShardLook& look,
                                               const std::vector<int>& places,
                                               const SlotSet& allowed = SlotSet::all());

/// The values to write, in this order, each into the slot that is the first of its places.
[[nodiscard]] std::vector<MarkValue> copies_of(const MarkValue& mark);

/// The mark that a shard's data set holds: of those found in its slots, the newest that was written
/// to this shard and that all copies agree on as far as their slots are there. Its places are
/// ascending.
[[nodiscard]] std::optional<MarkValue> mark_of_shard(const ShardLook& look,
                                                     std::span<const MarkValue> found);

/// Marks that were written to this shard after `own` in one copy only: they may become
/// mark_of_shard() when the slot of the other copy leaves. Their places are ascending.
[[nodiscard]] std::vector<MarkValue> half_written(const ShardLook& look,
                                                  std::span<const MarkValue> found,
                                                  const std::optional<MarkValue>& own);

}  // namespace fcap::updater
