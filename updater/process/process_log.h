#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <spdlog/spdlog.h>

#include <fcap/log.h>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// Makes spdlog's default logger write lines to standard error, as text or as one JSON object per
/// line. Where standard error is the journal, each line begins with its priority (sd-daemon(3)),
/// and a text line has no time of its own. Not thread-safe; called once, first thing. Before it,
/// spdlog's own default applies.
void configure_logging(const LogSettings& settings);

/// What libfcap's parts log through, with `part` in front of each text.
[[nodiscard]] LogCallback log_callback(std::string_view part);

/// One kind of failure that may repeat thousands of times per second: the first line is written at
/// once, then at most one in `interval`, which says how many were left out.
///
/// Thread-safe.
class RepeatedLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RepeatedLog(Clock::duration interval = std::chrono::seconds{10}) noexcept
      : interval_(interval) {}

  void warn(std::string_view text) noexcept { write(spdlog::level::warn, text); }
  void error(std::string_view text) noexcept { write(spdlog::level::err, text); }

  /// Whether a line may be written at `now`, and if so how many were left out since the last.
  struct LineTurn {
    bool write = false;
    std::uint64_t left_out = 0;
  };
  [[nodiscard]] LineTurn take_turn(Clock::time_point now) noexcept;

 private:
  void write(spdlog::level::level_enum level, std::string_view text) noexcept;

  const Clock::duration interval_;
  std::mutex mutex_;
  bool written_ = false;
  Clock::time_point last_;
  std::uint64_t left_out_ = 0;
};

}  // namespace fcap::updater
