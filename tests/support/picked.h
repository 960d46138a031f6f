#pragma once

#include <cstddef>
#include <vector>

#include <fcap/page.h>

namespace fcap {

/// The candidates of the slots that have one.
inline std::vector<std::size_t> picked(const PagePicks& page) {
  std::vector<std::size_t> candidates;
  for (const PagePicks::Pick& pick : page.picks) {
    if (pick.candidate) candidates.push_back(*pick.candidate);
  }
  return candidates;
}

}  // namespace fcap
