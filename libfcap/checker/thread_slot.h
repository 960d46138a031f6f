#pragma once

#include <cstddef>

namespace fcap::checker {

inline constexpr std::size_t kThreadSlots = 64;
/// What a thread has that found all slots taken, or that is ending.
inline constexpr std::size_t kNoSlot = kThreadSlots;

namespace thread_slot {
inline constexpr std::size_t kNotAsked = kThreadSlots + 1;
extern constinit thread_local std::size_t mine;
std::size_t claim() noexcept;
}  // namespace thread_slot

/// A number below kThreadSlots that no other living thread of this process has, or kNoSlot.
///
/// What lies at this index of an array is written by one thread alone, so that no locked
/// instruction is needed for it. A thread keeps its slot until it ends; the thread that gets the
/// slot next sees what was written there. Threads beyond the sixty-fourth do without.
///
/// Not for signal handlers: a handler has the slot of the thread that it interrupts.
[[nodiscard]] inline std::size_t own_thread_slot() noexcept {
  const std::size_t slot = thread_slot::mine;
  return slot != thread_slot::kNotAsked ? slot : thread_slot::claim();
}

}  // namespace fcap::checker
