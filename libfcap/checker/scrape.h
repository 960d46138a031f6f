#pragma once

#include <cstdint>
#include <vector>

#include <fcap/checker.h>

namespace fcap {

/// All that a Checker tells of itself, asked for in one call, so that its destructor does not come
/// in between.
struct Scrape {
  /// Throws std::bad_alloc.
  explicit Scrape(const Checker& checker);

  /// How many calls have counted themselves in (CountedCall), this one included.
  std::uint64_t calls_begun = 0;
  CheckerStats stats;
  CheckerHealth health;
  std::vector<ShadowCount> shadows;
};

}  // namespace fcap
