#include "live_view.h"

#include <string>

namespace ad_server {

void LiveView::print(std::optional<std::int64_t> lag) {
  if (lines_++ % 20 == 0) {
    std::fprintf(out_, "%6s %11s %13s %13s %12s %11s %9s %13s %9s\n", "time", "requests/s",
                 "check p50 us", "check p99 us", "allowed", "capped", "lag", "visible p99",
                 "fail-open");
  }
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  const std::uint64_t requests = counters_.requests.load();
  const double rate = seconds > 0 ? static_cast<double>(requests - last_requests_) / seconds : 0;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const std::string lag_text = lag ? std::to_string(*lag) : "?";
  const std::string visible =
      counters_.propagation_us.count() == 0
          ? "-"
          : std::to_string(counters_.propagation_us.percentile_us(0.99) / 1000) + " ms";
  std::fprintf(out_, "%5.0fs %11.0f %13llu %13llu %12llu %11llu %9s %13s %9llu\n", elapsed, rate,
               static_cast<unsigned long long>(counters_.check_us.percentile_us(0.50)),
               static_cast<unsigned long long>(counters_.check_us.percentile_us(0.99)),
               static_cast<unsigned long long>(counters_.candidates_allowed.load()),
               static_cast<unsigned long long>(counters_.candidates_capped.load()),
               lag_text.c_str(), visible.c_str(),
               static_cast<unsigned long long>(counters_.shown_fail_open.load()));
  std::fflush(out_);
  last_ = now;
  last_requests_ = requests;
}

}  // namespace ad_server
