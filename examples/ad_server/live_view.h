#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "live_counters.h"

namespace ad_server {

/// One line per second on the terminal.
class LiveView {
 public:
  LiveView(const LiveCounters& counters, std::FILE* out) : counters_(counters), out_(out) {}

  void print(std::optional<std::int64_t> lag);

 private:
  const LiveCounters& counters_;
  std::FILE* out_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = begin_;
  std::uint64_t last_requests_ = 0;
  std::uint64_t lines_ = 0;
};

}  // namespace ad_server
