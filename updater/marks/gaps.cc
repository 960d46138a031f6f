#include "updater/marks/gaps.h"

#include <algorithm>
#include <limits>

namespace fcap::updater {

Gaps gaps_with(const Gaps& gaps, Gap more) {
  if (more.from >= more.to) return gaps;
  Gaps all;
  all.reserve(gaps.size() + 1);
  for (const Gap& gap : gaps) {
    if (gap.to < more.from) {
      all.push_back(gap);
    } else if (gap.from <= more.to) {
      more = {std::min(gap.from, more.from), std::max(gap.to, more.to)};
    }
  }
  all.push_back(more);
  for (const Gap& gap : gaps) {
    if (gap.from > more.to) all.push_back(gap);
  }
  return all;
}

Gaps gaps_without(const Gaps& gaps, Gap cut) {
  if (cut.from >= cut.to) return gaps;
  Gaps left;
  left.reserve(gaps.size() + 1);
  for (const Gap& gap : gaps) {
    const Gap before{gap.from, std::min(gap.to, cut.from)};
    const Gap behind{std::max(gap.from, cut.to), gap.to};
    if (before.from < before.to) left.push_back(before);
    if (behind.from < behind.to) left.push_back(behind);
  }
  return left;
}

Gaps gaps_below(const Gaps& gaps, std::int64_t end) {
  return gaps_without(gaps, {end, std::numeric_limits<std::int64_t>::max()});
}

bool gaps_covered(const Gaps& gaps, const Gaps& all) {
  return std::all_of(gaps.begin(), gaps.end(), [&all](const Gap& gap) {
    return std::any_of(all.begin(), all.end(), [&gap](const Gap& wide) {
      return wide.from <= gap.from && gap.to <= wide.to;
    });
  });
}

Gaps gaps_merged(Gaps gaps, std::size_t most) {
  while (gaps.size() > std::max<std::size_t>(most, 1)) {
    std::size_t nearest = 1;
    const auto apart = [&gaps](std::size_t i) { return gaps[i].from - gaps[i - 1].to; };
    for (std::size_t i = 2; i < gaps.size(); ++i) {
      if (apart(i) < apart(nearest)) nearest = i;
    }
    gaps[nearest - 1].to = gaps[nearest].to;
    gaps.erase(gaps.begin() + static_cast<std::ptrdiff_t>(nearest));
  }
  return gaps;
}

std::int64_t offsets_in(const Gaps& gaps) noexcept {
  std::int64_t sum = 0;
  for (const Gap& gap : gaps) sum += gap.to - gap.from;
  return sum;
}

}  // namespace fcap::updater
