#include "cli/simulate/progress.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"

namespace fcap::cli {

void Progress::begin(std::string stage) {
  finish();
  stage_ = std::move(stage);
  begun_ = Clock::now();
  last_ = begun_;
}

void Progress::report(std::uint64_t done, std::uint64_t total) {
  constexpr auto kSilence = std::chrono::seconds{1};
  constexpr auto kInterval = std::chrono::milliseconds{200};
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (now - begun_ < kSilence || now - last_ < kInterval) return;
  last_ = now;
  line_is_open_ = true;
  err_ << "\r\x1B[K" << stage_;
  if (total > 0 && done > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto left =
        std::chrono::ceil<std::chrono::seconds>((now - begun_) * ((1 - share) / share));
    err_ << fmt::format(": {:.0f} %, {} left", share * 100, base::spoken_length(left));
  }
  err_ << std::flush;
}

void Progress::finish() {
  if (line_is_open_) err_ << "\r\x1B[K" << std::flush;
  line_is_open_ = false;
}

}  // namespace fcap::cli
