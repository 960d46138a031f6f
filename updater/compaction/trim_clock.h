#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include <fcap/time.h>

namespace fcap::updater {

/// The clock by which compaction judges what is too old to be kept. The pipeline sets it and
/// compaction reads it, on threads of their own.
///
/// Thread safety: any thread.
class TrimClock {
 public:
  void set(Instant now) noexcept { ms_.store(to_ms(now), std::memory_order_relaxed); }
  /// None before the first set().
  [[nodiscard]] std::optional<Instant> now() const noexcept {
    const std::int64_t ms = ms_.load(std::memory_order_relaxed);
    return ms == 0 ? std::nullopt : std::optional(instant_from_ms(ms));
  }

 private:
  std::atomic<std::int64_t> ms_{0};  // 0: not set yet
};

}  // namespace fcap::updater
