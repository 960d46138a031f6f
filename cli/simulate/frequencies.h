#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fcap::cli {

/// How many users (or pairs of user and campaign) have how many impressions.
class Frequencies {
 public:
  /// One more has so many; 0 is not counted.
  void add(std::uint64_t impressions);

  /// How many have from `first` to `last`, both included.
  [[nodiscard]] std::uint64_t between(std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t at_least(std::uint64_t impressions) const;
  /// The most that one has.
  [[nodiscard]] std::uint64_t most() const noexcept { return counts_.size(); }

 private:
  std::vector<std::uint64_t> counts_;  ///< [0]: those with one impression
};

/// Numbers of impressions that one row of a table or plot stands for.
struct FrequencyBucket {
  std::uint64_t first = 1;
  std::uint64_t last = 1;

  /// "3", "6–10".
  [[nodiscard]] std::string label() const;
};

/// 1, 2, 3, 4–5, 6–10, 11–20, 21–50, … as far as there is anybody.
[[nodiscard]] std::vector<FrequencyBucket> frequency_buckets(std::uint64_t most);

/// For "seen at least N times": 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, … up to `most`.
[[nodiscard]] std::vector<std::uint64_t> reach_steps(std::uint64_t most);

}  // namespace fcap::cli
