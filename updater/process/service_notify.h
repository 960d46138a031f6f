#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace fcap::updater {

/// What systemd is told of the daemon's state. Without systemd, nothing happens.
///
/// Thread-safe.
class ServiceNotify {
 public:
  static void ready() noexcept;
  static void stopping() noexcept;
  /// It stops to start again in the same process, and is then ready().
  static void restarting() noexcept;
  /// Feeds the watchdog and says, in a line, how things are.
  static void alive(const std::string& status) noexcept;
  /// How often the watchdog wants to be fed; none: there is no watchdog.
  [[nodiscard]] static std::optional<std::chrono::microseconds> watchdog_interval() noexcept;
};

}  // namespace fcap::updater
