#include "cli/simulate/frequencies.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

// A user with more (most likely a robot) is counted as having exactly this many.
constexpr std::uint64_t kImpressionsMax = 1'000'000;

}  // namespace

void Frequencies::add(std::uint64_t impressions) {
  if (impressions == 0) return;
  impressions = std::min(impressions, kImpressionsMax);
  if (counts_.size() < impressions) counts_.resize(static_cast<std::size_t>(impressions), 0);
  ++counts_[static_cast<std::size_t>(impressions) - 1];
}

std::uint64_t Frequencies::between(std::uint64_t first, std::uint64_t last) const {
  const auto begin = std::min<std::uint64_t>(first - 1, counts_.size());
  const auto end = std::clamp<std::uint64_t>(last, begin, counts_.size());
  return std::accumulate(counts_.begin() + static_cast<std::ptrdiff_t>(begin),
                         counts_.begin() + static_cast<std::ptrdiff_t>(end), std::uint64_t{0});
}

std::uint64_t Frequencies::at_least(std::uint64_t impressions) const {
  return between(impressions, kImpressionsMax);
}

std::string FrequencyBucket::label() const {
  return first == last ? grouped(first) : grouped(first) + "–" + grouped(last);
}

std::vector<FrequencyBucket> frequency_buckets(std::uint64_t most) {
  std::vector<FrequencyBucket> buckets;
  std::uint64_t first = 1;
  const auto add = [&](std::uint64_t last) {
    if (first > most) return;
    buckets.push_back({first, last});
    first = last + 1;
  };
  for (const std::uint64_t last : std::array<std::uint64_t, 4>{1, 2, 3, 5}) add(last);
  std::uint64_t ten = 10;
  while (first <= most) {
    for (const std::uint64_t last : {ten, 2 * ten, 5 * ten}) add(last);
    ten *= 10;
  }
  return buckets;
}

std::vector<std::uint64_t> reach_steps(std::uint64_t most) {
  std::vector<std::uint64_t> steps;
  for (const std::uint64_t step : std::array<std::uint64_t, 6>{1, 2, 3, 4, 5, 7}) {
    if (step <= most) steps.push_back(step);
  }
  constexpr std::array<std::uint64_t, 6> kPerTen{10, 15, 20, 30, 50, 70};
  for (std::uint64_t scale = 1; scale * kPerTen.front() <= most; scale *= 10) {
    for (const std::uint64_t step : kPerTen) {
      if (step * scale <= most) steps.push_back(step * scale);
    }
  }
  return steps;
}

}  // namespace fcap::cli
