#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fcap/checker.h>
#include <fcap/store.h>

#include "checker/stripes.h"
#include "checker/thread_slot.h"

namespace fcap::checker {

// The one list of counters: each name, and its field of CheckerStats.
#define FCAP_CHECKER_COUNTERS(COUNTER)                \
  COUNTER(checks, checks)                             \
  COUNTER(candidates, candidates)                     \
  COUNTER(allowed, allowed)                           \
  COUNTER(shadow_capped, shadow_capped)               \
  COUNTER(no_user, reasons.no_user)                   \
  COUNTER(no_rules, reasons.no_rules)                 \
  COUNTER(timeouts, reasons.timeouts)                 \
  COUNTER(unavailable, reasons.unavailable)           \
  COUNTER(breaker_open, reasons.breaker_open)         \
  COUNTER(overloaded, reasons.overloaded)             \
  COUNTER(undecodable, reasons.undecodable)           \
  COUNTER(forked, reasons.forked)                     \
  COUNTER(invalid, reasons.invalid)                   \
  COUNTER(shutdown, reasons.shutdown)                 \
  COUNTER(reentrant, reasons.reentrant)               \
  COUNTER(records_found, reads.found)                 \
  COUNTER(records_missing, reads.missing)             \
  COUNTER(server_errors, reads.server_errors)         \
  COUNTER(stale_reads, reads.stale)                   \
  COUNTER(unread_checks, reads.unneeded)              \
  COUNTER(canceled, async.canceled)                   \
  COUNTER(unknown_frames, reads.unknown_frames)       \
  COUNTER(shown_noted, shown.noted)                   \
  COUNTER(shown_confirmed, shown.confirmed)           \
  COUNTER(shown_displaced, shown.displaced)           \
  COUNTER(shown_taken_back, shown.taken_back)         \
  COUNTER(cached_checks, cache.checks)                \
  COUNTER(cached_verdicts, cache.verdicts)            \
  COUNTER(certain_verdicts, certain_verdicts)         \
  COUNTER(callbacks, async.callbacks)                 \
  COUNTER(callback_ns_total, async.callback_ns_total) \
  COUNTER(reserves, reserves.calls)                   \
  COUNTER(reserves_unknown, reserves.unknown)         \
  COUNTER(reserve_conflicts, reserves.conflicts)      \
  COUNTER(shared, shares.shared)                      \
  COUNTER(shares_unread, shares.unread)               \
  COUNTER(shares_no_room, shares.no_room)             \
  COUNTER(shares_no_config, shares.no_config)         \
  COUNTER(shares_clock, shares.clock)                 \
  COUNTER(shares_taken_back, shares.taken_back)

enum class Counter : std::uint8_t {
#define FCAP_COUNTER_NAME(name, field) name,
  FCAP_CHECKER_COUNTERS(FCAP_COUNTER_NAME)
#undef FCAP_COUNTER_NAME
  // Not shown as they are. NOLINTBEGIN(readability-identifier-naming): named like those above
  checks_answered,
  calls_begun,
  calls_ended,
  calls_submitted,        ///< those that said so before they ended
  calls_submitted_ended,  ///< those of them that have ended, which calls_ended does not count
  reserves_ended,         ///< by ReserveReason: this one and those that follow
  // NOLINTEND(readability-identifier-naming)
};
inline constexpr std::size_t kCounterCount =
    static_cast<std::size_t>(Counter::reserves_ended) + kReserveReasonCount;

/// Counters that many threads add to without meeting. Sums are not a snapshot of one instant.
///
/// Thread safety: all functions from any thread.
class Counters {
 public:
  /// Returns what this thread had counted before, or those that share its cell.
  std::uint64_t add(Counter counter, std::uint64_t amount = 1) noexcept {
    return amount == 0 ? 0 : add(counter, amount, std::memory_order_relaxed);
  }

  /// So many hard calls have ended alike.
  void add_ended(ReserveReason reason, bool unknown, std::uint64_t amount = 1) noexcept {
    add(counter_of(reason), amount);
    if (unknown) add(Counter::reserves_unknown, amount);
  }

  /// add() with a place in the single total order: whoever sees the sum without it has stored what
  /// this thread loads afterwards, if that is sequentially consistent too.
  void add_ordered(Counter counter) noexcept {
    const std::size_t slot = thread_slot::mine;
    if (slot >= kThreadSlots) [[unlikely]] {
      add_shared(counter, 1);
    } else {
      cell(slot, counter).fetch_add(1, std::memory_order_seq_cst);
    }
  }

  /// add() that also publishes what this thread did before; pairs with sum().
  void add_release(Counter counter) noexcept { add(counter, 1, std::memory_order_release); }

  [[nodiscard]] std::uint64_t sum(Counter counter) const noexcept {
    std::uint64_t total = 0;
    for (const auto& stripe : stripes_) {
      total += stripe.cells[static_cast<std::size_t>(counter)].load(std::memory_order_seq_cst);
    }
    return total;
  }

  /// Whether every call that had begun no longer needs the store. Sums are taken backwards, so that
  /// a call in between can only make this false.
  [[nodiscard]] bool all_submitted() const noexcept {
    const std::uint64_t past = sum(Counter::calls_ended) + sum(Counter::calls_submitted);
    return sum(Counter::calls_begun) == past;
  }
  /// Whether every call that had begun has ended; as above.
  [[nodiscard]] bool all_ended() const noexcept {
    const std::uint64_t past = sum(Counter::calls_ended) + sum(Counter::calls_submitted_ended);
    return sum(Counter::calls_begun) == past;
  }

  /// Sets their fields.
  void copy_to(CheckerStats& stats) const noexcept {
#define FCAP_COPY_COUNTER(name, field) stats.field = sum(Counter::name);
    FCAP_CHECKER_COUNTERS(FCAP_COPY_COUNTER)
#undef FCAP_COPY_COUNTER
    for (std::size_t i = 0; i < kReserveReasonCount; ++i) {
      stats.reserves.ended[i] = sum(counter_of(static_cast<ReserveReason>(i)));
    }
    // Worked out, since each counter costs a check an atomic addition.
    stats.capped = stats.candidates > stats.allowed ? stats.candidates - stats.allowed : 0;
  }

 private:
  static constexpr Counter counter_of(ReserveReason reason) noexcept {
    return static_cast<Counter>(static_cast<std::size_t>(Counter::reserves_ended) +
                                static_cast<std::size_t>(reason));
  }

  struct alignas(kCacheLineBytes) Stripe {
    std::array<std::atomic<std::uint64_t>, kCounterCount> cells{};
  };

  /// For the threads that have no slot of their own.
  static constexpr std::size_t kSharedStripes = 8;

  std::uint64_t add(Counter counter, std::uint64_t amount, std::memory_order order) noexcept {
    const std::size_t slot = thread_slot::mine;
    if (slot >= kThreadSlots) [[unlikely]]
      return add_shared(counter, amount);
    std::atomic<std::uint64_t>& own = cell(slot, counter);
    const std::uint64_t before = own.load(std::memory_order_relaxed);
    own.store(before + amount, order);  // no other thread writes it
    return before;
  }

  /// For a thread that has no slot, or has not asked for one yet. In any order that the callers
  /// want. Kept out of their way: a check just fits into the first level of an instruction cache.
  std::uint64_t add_shared(Counter counter, std::uint64_t amount) noexcept;

  std::atomic<std::uint64_t>& cell(std::size_t stripe, Counter counter) noexcept {
    return stripes_[stripe].cells[static_cast<std::size_t>(counter)];
  }

  std::array<Stripe, kThreadSlots + kSharedStripes> stripes_{};
};

/// Counts a call for as long as it may touch the Checker.
class CallInside {
 public:
  explicit CallInside(Counters& counters) noexcept : counters_(counters) {
    counters_.add_ordered(Counter::calls_begun);
  }
  ~CallInside() {
    counters_.add_release(submitted_ ? Counter::calls_submitted_ended : Counter::calls_ended);
  }
  CallInside(const CallInside&) = delete;
  CallInside& operator=(const CallInside&) = delete;

  /// The call does not go to the store from here on.
  void submitted() noexcept {
    if (!std::exchange(submitted_, true)) counters_.add_release(Counter::calls_submitted);
  }

 private:
  Counters& counters_;
  bool submitted_ = false;
};

/// Why a check was answered without the history, if it was.
void count_reason(Counters& counters, Reason reason) noexcept;
/// A check's verdicts and its reason.
void count_result(Counters& counters, const CheckResult& result) noexcept;
/// How a read ended.
void count_read(Counters& counters, StoreCode code, bool stale) noexcept;

}  // namespace fcap::checker
