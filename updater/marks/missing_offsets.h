#pragma once

#include <cstdint>
#include <vector>

#include "updater/marks/gaps.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// Which offsets of a partition may be missing in a Redis Cluster, for the users of which slots.
class MissingOffsets {
 public:
  /// Offsets that are missing for the users of `slots`; no slot is in two stretches.
  struct MissingStretch {
    SlotSet slots;
    Gaps gaps;
  };

  void add(const SlotSet& slots, const Gaps& gaps);
  void add(const SlotSet& slots, Gap gap) { add(slots, Gaps{gap}); }
  /// They are there now.
  void remove(const SlotSet& slots, Gap gap);

  /// Every offset that is missing for a user of `slots`.
  [[nodiscard]] Gaps of(const SlotSet& slots) const;
  /// Those for whose users some offset is missing.
  [[nodiscard]] SlotSet slots() const;
  [[nodiscard]] const std::vector<MissingStretch>& stretches() const noexcept { return stretches_; }
  [[nodiscard]] bool empty() const noexcept { return stretches_.empty(); }

 private:
  template <typename Change>
  void change(const SlotSet& slots, Change&& change_gaps);

  std::vector<MissingStretch> stretches_;
};

}  // namespace fcap::updater
