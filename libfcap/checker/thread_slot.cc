#include "checker/thread_slot.h"

#include <atomic>
#include <bit>
#include <cstdint>

namespace fcap::checker::thread_slot {
namespace {

static_assert(kThreadSlots == 64, "one word has a bit for each");
constinit std::atomic<std::uint64_t> taken{0};

// Gives the slot back when the thread ends.
class Return {
 public:
  Return() = default;
  ~Return() {
    const std::size_t slot = mine;
    // Whatever still runs at this thread's end does so without a slot.
    mine = kNoSlot;
    if (slot < kThreadSlots) {
      taken.fetch_and(~(std::uint64_t{1} << slot), std::memory_order_release);
    }
  }
  Return(const Return&) = delete;
  Return& operator=(const Return&) = delete;

  // Makes the object, if this is the first use of it.
  void touch() const noexcept {}
};

thread_local Return at_end_of_thread;

}  // namespace

constinit thread_local std::size_t mine = kNotAsked;

std::size_t claim() noexcept {
  at_end_of_thread.touch();
  std::uint64_t seen = taken.load(std::memory_order_relaxed);
  while (~seen != 0) {
    const auto slot = static_cast<std::size_t>(std::countr_one(seen));
    if (taken.compare_exchange_weak(seen, seen | std::uint64_t{1} << slot,
                                    std::memory_order_acquire, std::memory_order_relaxed)) {
      return mine = slot;
    }
  }
  return mine = kNoSlot;
}

}  // namespace fcap::checker::thread_slot
