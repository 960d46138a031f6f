#include "updater/pipeline/event_clocks.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::hours kExpiryDoubt{1};  // a clock that is ahead by less expires little

}  // namespace

void EventClocks::note_message(std::int64_t timestamp_ms, bool by_broker) noexcept {
  newest_message_ms_ = std::max(newest_message_ms_, timestamp_ms);
  if (by_broker) newest_append_ms_ = std::max(newest_append_ms_, timestamp_ms);
}

bool EventClocks::compare() {
  const auto difference = redis_clock_ ? redis_clock_() : std::nullopt;
  if (!difference) return false;
  compared_ = true;
  redis_ahead_ = *difference;
  const bool differed = !trouble_.empty();
  const bool differ = std::chrono::abs(redis_ahead_) > future_allowed_;
  trouble_.clear();
  if (differ) {
    trouble_ =
        fmt::format("the clock of Redis is {} s ahead of this machine's: synchronize both (NTP)",
                    std::chrono::floor<std::chrono::seconds>(redis_ahead_).count());
  }
  if (differ != differed && log_) {
    if (differ) log_(LogLevel::kError, trouble_);
    if (!differ) log_(LogLevel::kInfo, "the clocks of Redis and of this machine agree again");
  }
  if (redis_ahead_ > kExpiryDoubt) expiries_doubted_ = true;
  return redis_ahead_ <= kExpiryDoubt && !differ && std::exchange(expiries_doubted_, false);
}

IntakeClocks EventClocks::now() {
  if (!compared_) (void)compare();
  const Instant here = base::wall_now();
  // An event is in the future, or too old, only if it is so by all clocks: one wrong clock neither
  // rejects nor drops an event that counts.
  const Instant latest = std::max({here, redis_now(), instant_from_ms(newest_append_ms_)});
  Instant earliest = std::min(here, redis_now());
  if (newest_message_ms_ > 0) earliest = std::min(earliest, instant_from_ms(newest_message_ms_));
  return {latest, earliest};
}

Instant EventClocks::redis_now() const noexcept {
  return base::wall_now() + redis_ahead_;
}

Instant EventClocks::after_all_events() {
  constexpr std::chrono::seconds kBehind{1};
  return std::chrono::floor<std::chrono::seconds>(now().latest) + kBehind + future_allowed_;
}

}  // namespace fcap::updater
