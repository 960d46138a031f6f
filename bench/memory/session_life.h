#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fcap/time.h>

namespace fcap::bench {

/// One impression of one user in the life of a population.
struct LifeEvent {
  std::int64_t time_ms = 0;  ///< since the life's begin
  std::uint32_t user = 0;
  std::uint32_t fingerprint = 0;
  std::uint8_t campaign = 0;
};

inline constexpr std::chrono::days kLifeLength{30};

/// Thirty days of users who come in bursts: five sessions each, at any time, of six impressions 5
/// to 55 s apart, three of each of ten campaigns in the end. Ordered by time. What a session has
/// left when the days end lies at their begin, so that at any instant as many are under way.
std::vector<LifeEvent> session_life(std::size_t users);

}  // namespace fcap::bench
