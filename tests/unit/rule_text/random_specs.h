#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <fcap/rule_set.h>

#include "tests/support/seed.h"

namespace fcap::rule_text {

/// Makes rule sets that every reader must accept: any value in its range, ids with any characters.
class RandomSpecs {
 public:
  explicit RandomSpecs(std::uint64_t seed) : random_(seed) {}

  RuleSetSpec spec();

  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }

 private:
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  std::string id();
  Instant instant();
  Window window();
  Rule rule();
  Campaign campaign();

  std::mt19937_64 random_;
};

/// Empty where the two are equal; otherwise where they first differ. Fields that a window of its
/// kind does not have are not looked at.
std::string first_difference(const RuleSetSpec& left, const RuleSetSpec& right);

}  // namespace fcap::rule_text
