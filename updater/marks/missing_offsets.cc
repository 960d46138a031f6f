#include "updater/marks/missing_offsets.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fcap::updater {
namespace {

// While a shard is away, every batch with an event of its users adds a gap. So that neither memory
// nor time grows with the outage, neighbours are merged where there would be more gaps than this:
// the offsets between them then count as missing too. Reading them again changes nothing.
constexpr std::size_t kGapsMax = 64;

// The offsets of stretches that may overlap, in any order.
Gaps gaps_of(std::vector<Gap> stretches) {
  std::ranges::sort(stretches, {}, &Gap::from);
  Gaps gaps;
  gaps.reserve(stretches.size());
  for (const Gap& gap : stretches) {
    if (gap.from >= gap.to) continue;
    if (gaps.empty() || gap.from > gaps.back().to) {
      gaps.push_back(gap);
    } else {
      gaps.back().to = std::max(gaps.back().to, gap.to);
    }
  }
  return gaps;
}

}  // namespace

// Changes what is missing for `slots`; stretches with equal gaps become one.
template <typename Change>
void MissingOffsets::change(const SlotSet& slots, Change&& change_gaps) {
  SlotSet rest = slots;
  std::vector<MissingStretch> changed;
  const auto put = [&changed](const SlotSet& of, Gaps gaps) {
    if (of.empty() || gaps.empty()) return;
    const auto same = std::ranges::find(changed, gaps, &MissingStretch::gaps);
    if (same != changed.end()) {
      same->slots |= of;
    } else {
      changed.push_back({of, std::move(gaps)});
    }
  };
  for (const MissingStretch& stretch : stretches_) {
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
    all.insert(all.end(), gaps.begin(), gaps.end());
    return gaps_merged(gaps_of(std::move(all)), kGapsMax);
  });
}

void MissingOffsets::remove(const SlotSet& slots, Gap gap) {
  change(slots, [&gap](const Gaps& all) { return gaps_without(all, gap); });
}

SlotSet MissingOffsets::slots() const {
  SlotSet slots;
  for (const MissingStretch& stretch : stretches_) slots |= stretch.slots;
  return slots;
}

Gaps MissingOffsets::of(const SlotSet& slots) const {
  std::vector<Gap> all;
  for (const MissingStretch& stretch : stretches_) {
    if (stretch.slots.meets(slots)) {
      all.insert(all.end(), stretch.gaps.begin(), stretch.gaps.end());
    }
  }
  return gaps_of(std::move(all));
}

}  // namespace fcap::updater
