#pragma once

#include <span>
#include <vector>

#include <fcap/hard.h>

namespace fcap {

/// The same hard call for each of some impressions.
inline std::vector<HardRequest> asking(HardCall call, std::span<const Impression> impressions) {
  std::vector<HardRequest> requests;
  for (const Impression& impression : impressions) requests.emplace_back(call, impression);
  return requests;
}

}  // namespace fcap
