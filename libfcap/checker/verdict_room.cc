#include "checker/verdict_room.h"

#include <utility>

namespace fcap::checker {

VerdictRoom::VerdictRoom() {
  for (auto& spare : spare_) spare.reserve(kSpareVerdicts);
}

bool VerdictRoom::make(std::size_t count, std::vector<Verdict>& verdicts) noexcept {
  verdicts.clear();
  try {
    verdicts.reserve(count);
  } catch (...) {
    return take_spare(count, verdicts);
  }
  if (spare_used_.load(std::memory_order_relaxed)) refill();
  return true;
}

bool VerdictRoom::take_spare(std::size_t count, std::vector<Verdict>& verdicts) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& spare : spare_) {
    if (spare.capacity() < count) continue;
    verdicts = std::exchange(spare, {});
    spare_used_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void VerdictRoom::refill() noexcept {
  const std::lock_guard lock(mutex_);
  spare_used_.store(false, std::memory_order_relaxed);
  try {
    for (auto& spare : spare_) spare.reserve(kSpareVerdicts);
  } catch (...) {
    spare_used_.store(true, std::memory_order_relaxed);
  }
}

}  // namespace fcap::checker
