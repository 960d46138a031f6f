#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/checker_stats.h>

#include "checker/stripes.h"

namespace fcap::checker {

/// How often each shadow rule would have capped. A shadow rule is tried out for exactly this
/// number.
///
/// Bounded: ids beyond kRulesMax are counted together, under an empty id.
/// Thread safety: all functions from any thread.
class ShadowCounts {
 public:
  static constexpr std::size_t kRulesMax = 1'000;

  /// Out of memory, it counts nothing.
  void add(std::string_view rule_id) noexcept;

  /// In the order of the ids. Throws std::bad_alloc.
  [[nodiscard]] std::vector<ShadowCount> counts() const;

 private:
  struct alignas(kCacheLineBytes) CountsStripe {
    mutable std::mutex mutex;
    std::map<std::string, std::uint64_t, std::less<>> counts;
  };

  // Threads on different processors rarely meet; few, since each may hold all ids.
  std::array<CountsStripe, 8> parts_;
};

}  // namespace fcap::checker
