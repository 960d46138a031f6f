#include "redis/missing_times.h"

#include <cstddef>

namespace fcap::redis {

void MissingTimes::set(const std::vector<MissingEvents>& missing) {
  if (missing == set_) return;
  SlotSet complete = SlotSet::all();
  for (const MissingEvents& events : missing) complete -= events.slots;
  const bool some_slots = !missing.empty() && missing.front().slots != SlotSet::all();
  if (some_slots && table_ == nullptr) table_ = std::make_unique<Table>();
  const auto put = [this](const SlotSet& slots, std::int64_t ms) {
    for (const SlotSet::Range& range : slots.ranges()) {
      for (int slot = range.first; slot <= range.last; ++slot) {
        (*table_)[static_cast<std::size_t>(slot)].store(ms, std::memory_order_relaxed);
      }
    }
  };
  // Each slot is written once, with its new value. If all were cleared first, a check in between
  // would call an incomplete count complete.
  if (table_ != nullptr) {
    for (const MissingEvents& events : missing) put(events.slots, to_ms(events.before));
    put(complete, kNone);
    by_slot_.store(table_.get(), std::memory_order_release);
  }
  // Released, so that who reads that some event is missing also reads for which slots.
  latest_ms_.store(missing.empty() ? kNone : to_ms(missing.front().before),
                   std::memory_order_release);
  set_ = missing;
}

std::optional<Instant> MissingTimes::of_slot(std::uint16_t slot) const noexcept {
  const std::int64_t latest_ms = latest_ms_.load(std::memory_order_acquire);
  const Table* const by_slot = by_slot_.load(std::memory_order_acquire);
  if (latest_ms == kNone || by_slot == nullptr) return instant_of(latest_ms);
  return instant_of((*by_slot)[slot].load(std::memory_order_relaxed));
}

}  // namespace fcap::redis
