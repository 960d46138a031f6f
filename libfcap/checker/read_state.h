#pragma once

#include <atomic>
#include <cstdint>

namespace fcap::checker {

/// Who answers an AsyncRead, who deals with the outcome that was kept, and until when the read's
/// owner must stay. One word, and each event is one atomic step on it: of two threads that act at
/// the same time, one comes later and sees what the other has done.
///
/// The word holds any of: submitted (the call that asked is through with the store), inside
/// (complete() runs and may touch the owner), kept (the store's outcome), claimed (somebody answers
/// or cancels), ended (that is over).
///
/// | event          | if the word has        | it gets   | what its caller does             |
/// |----------------|------------------------|-----------|----------------------------------|
/// | arrive()       | claimed                |           | kTooLate: leaves the owner alone |
/// |                | submitted (*)          | claimed   | kAnswer: answers, then end()     |
/// |                | anything else          | inside    | kKeep: kept(), then leave()      |
/// | kept()         | submitted, not claimed | kept      | true: has it answered            |
/// |                | anything else          | kept      | false: nothing                   |
/// | leave_submit() | kept, not claimed      | submitted | true: has it answered            |
/// |                | anything else          | submitted | false: nothing                   |
/// | claim()        | claimed                |           | false: nothing                   |
/// |                | anything else          | claimed   | true: answers, then end()        |
/// | end()          | inside                 | ended     | false: nothing                   |
/// |                | not inside             | ended     | true: has the owner forget it    |
/// | leave()        | ended                  | -inside   | true: has the owner forget it    |
/// |                | not ended              | -inside   | false: nothing                   |
///
/// (*) unless an executor answers.
///
/// The later of kept() and leave_submit() has the outcome answered, and the later of end() and
/// leave() has the read forgotten; until then the owner stays. So it may be touched by whoever has
/// claimed, up to end(), and by complete(), up to leave(). For the call that asked it stays anyway.
/// claim() may come any number of times, each other event once at most.
///
/// Each step acquires and releases, because the thread behind it needs what another thread has
/// written before its own step: behind claim(), the outcome before kept(); behind leave(), what was
/// let go of before end().
///
/// Thread safety: all functions from any thread, but reset(), which is called before anybody else
/// knows of the read.
class ReadState {
 public:
  enum class ReadArrival : std::uint8_t { kTooLate, kAnswer, kKeep };

  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

  [[nodiscard]] ReadArrival arrive(bool by_executor) noexcept {
    // Relaxed, because nothing is read by it: only what the exchange finds counts, and whoever is
    // too late touches nothing.
    std::uint32_t before = word_.load(std::memory_order_relaxed);
    while ((before & kClaimed) == 0) {
      const bool answers = (before & kSubmitted) != 0 && !by_executor;
      if (word_.compare_exchange_weak(before, before | (answers ? kClaimed : kInside),
                                      std::memory_order_acq_rel, std::memory_order_relaxed)) {
        return answers ? ReadArrival::kAnswer : ReadArrival::kKeep;
      }
    }
    return ReadArrival::kTooLate;
  }
  [[nodiscard]] bool kept() noexcept {
    return (add(kKept) & (kSubmitted | kClaimed)) == kSubmitted;
  }
  [[nodiscard]] bool leave() noexcept {
    return (word_.fetch_and(~kInside, std::memory_order_acq_rel) & kEnded) != 0;
  }
  [[nodiscard]] bool leave_submit() noexcept {
    return (add(kSubmitted) & (kKept | kClaimed)) == kKept;
  }
  [[nodiscard]] bool claim() noexcept { return (add(kClaimed) & kClaimed) == 0; }
  /// A second time it would have another read forgotten, so it is then false.
  [[nodiscard]] bool end() noexcept { return (add(kEnded) & (kInside | kEnded)) == 0; }

 private:
  static constexpr std::uint32_t kSubmitted = 1;
  static constexpr std::uint32_t kInside = 2;
  static constexpr std::uint32_t kKept = 4;
  static constexpr std::uint32_t kClaimed = 8;
  static constexpr std::uint32_t kEnded = 16;

  std::uint32_t add(std::uint32_t bit) noexcept {
    return word_.fetch_or(bit, std::memory_order_acq_rel);
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace fcap::checker
