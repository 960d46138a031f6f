#include "updater/marks/missing_offsets.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {

// Changes what is missing for `slots`; stretches with equal gaps become one.
template <typename Change>
void MissingOffsets::change(const SlotSet& slots, Change&& change_gaps) {
  SlotSet rest = slots;
  std::vector<Stretch> changed;
  const auto put = [&changed](const SlotSet& of, Gaps gaps) {
    if (of.empty() || gaps.empty()) return;
    const auto same = std::ranges::find(changed, gaps, &Stretch::gaps);
    if (same != changed.end()) {
      same->slots |= of;
    } else {
      changed.push_back({of, std::move(gaps)});
    }
  };
  for (const Stretch& stretch : stretches_) {
    const SlotSet common = stretch.slots & slots;
    put(stretch.slots - common, stretch.gaps);
    put(common, change_gaps(stretch.gaps));
    rest -= common;
  }
  put(rest, change_gaps(Gaps{}));
  stretches_ = std::move(changed);
}

void MissingOffsets::add(const SlotSet& slots, const Gaps& gaps) {
  change(slots, [&gaps](Gaps all) {
    for (const Gap& gap : gaps) all = gaps_with(all, gap);
    return all;
  });
}

void MissingOffsets::remove(const SlotSet& slots, Gap gap) {
  change(slots, [&gap](const Gaps& all) { return gaps_without(all, gap); });
}

Gaps MissingOffsets::of(const SlotSet& slots) const {
  Gaps all;
  for (const Stretch& stretch : stretches_) {
    if (!stretch.slots.meets(slots)) continue;
    for (const Gap& gap : stretch.gaps) all = gaps_with(all, gap);
  }
  return all;
}

}  // namespace fcap::updater
