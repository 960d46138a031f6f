#pragma once

#include <vector>

#include <fcap/checker.h>

namespace fcap {

/// All that a Checker tells of itself, asked for in one call, so that its destructor does not come
/// in between.
struct Scrape {
  /// Throws std::bad_alloc.
  explicit Scrape(const Checker& checker);

  CheckerStats stats;
  CheckerHealth health;
  std::vector<ShadowCount> shadows;
};

}  // namespace fcap
