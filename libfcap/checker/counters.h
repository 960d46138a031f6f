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

// The one table of what a Checker counts: fields of CheckerStats, and their metrics, in the order
// of docs/metrics.md.
//   COUNTER(name, field, metric, label, help)           has a cell; without `metric` it has none
//   BY_REASON(name, field, first, metric, label, help)  a cell for each Reason; a sample for those
//                                                       from `first` on
//   FIGURE(kind, field, metric, label, help)            has no cell: somebody else knows it
// Metrics of one name that differ in the label follow each other; the first has the help.
#define FCAP_CHECKER_STATS(COUNTER, BY_REASON, FIGURE)                                             \
  COUNTER(checks, checks, "checks_total", "", "Users that were asked about.")                      \
  COUNTER(candidates, candidates, "candidates_total", "", "Candidates that were judged.")          \
  COUNTER(allowed, allowed, "verdicts_total", "verdict=\"allowed\"",                               \
          "Verdicts, by whether the candidate may be shown.")                                      \
  FIGURE(kCounter, capped, "verdicts_total", "verdict=\"capped\"", "")                             \
  COUNTER(shadow_capped, shadow_capped, "shadow_capped_total", "",                                 \
          "Verdicts that a shadow rule would have capped.")                                        \
  BY_REASON(unjudged, unjudged, Reason::kNoUser, "unjudged_total", "reason",                       \
            "Checks that were answered without the history, by reason.")                           \
  COUNTER(records_found, reads.found, "reads_total", "result=\"found\"",                           \
          "Reads that the store answered, by what they found.")                                    \
  COUNTER(records_missing, reads.missing, "reads_total", "result=\"missing\"", "")                 \
  COUNTER(server_errors, reads.server_errors, "reads_total", "result=\"server_error\"", "")        \
  COUNTER(stale_reads, reads.stale, "stale_reads_total", "",                                       \
          "Reads that a replica answered; they may lack the latest events.")                       \
  COUNTER(unread_checks, reads.unneeded, "unread_checks_total", "",                                \
          "Checks that needed no read, because no rule counts anything for their candidates.")     \
  COUNTER(canceled, async.canceled, "canceled_total", "",                                          \
          "Asynchronous checks that were canceled.")                                               \
  COUNTER(callbacks, async.callbacks, "callbacks_total", "", "Callbacks that have run.")           \
  COUNTER(callback_ns_total, async.callback_ns_total, "", "", "")                                  \
  FIGURE(kGauge, async.answers_waiting, "answers_waiting", "",                                     \
         "Known answers whose callbacks wait for a thread.")                                       \
  FIGURE(kGauge, pending, "pending", "", "Checks that have begun and are not answered.")           \
  COUNTER(shown_noted, shown.noted, "shown_noted_total", "",                                       \
          "Impressions that note_shown() has noted.")                                              \
  COUNTER(shown_confirmed, shown.confirmed, "shown_confirmed_total", "",                           \
          "Noted impressions that were since read from the ledger.")                               \
  COUNTER(shown_displaced, shown.displaced, "shown_displaced_total", "",                           \
          "Noted impressions that newer ones have displaced; raise local.shown_max.")              \
  COUNTER(shown_taken_back, shown.taken_back, "shown_taken_back_total", "",                        \
          "Noted impressions that were taken back.")                                               \
  FIGURE(kGauge, shown.kept, "shown_kept", "", "Noted impressions that are remembered.")           \
  COUNTER(hard_calls, hard.calls, "", "", "")                                                      \
  BY_REASON(hard_ended, hard.ended, Reason::kCapped, "hard_calls_total", "outcome",                \
            "Hard calls and reserved pages, by how they ended. "                                   \
            "More that are repeated than there are retries mean that event ids are not unique.")   \
  COUNTER(hard_unknown, hard.unknown, "hard_unknown_total", "",                                    \
          "Hard calls of which it is not known whether they have written.")                        \
  COUNTER(hard_conflicts, hard.conflicts, "hard_conflicts_total", "",                              \
          "Exchanges of hard calls that found a record which another writer had changed.")         \
  COUNTER(shared, shares.shared, "shared_notes_total", "outcome=\"sent\"",                         \
          "Shown impressions that were to be shared with other servers, by what became of it.")    \
  COUNTER(shares_unread, shares.unread, "shared_notes_total", "outcome=\"unread\"", "")            \
  COUNTER(shares_no_room, shares.no_room, "shared_notes_total", "outcome=\"no_room\"", "")         \
  COUNTER(shares_no_config, shares.no_config, "shared_notes_total", "outcome=\"no_config\"", "")   \
  COUNTER(shares_clock, shares.clock, "shared_notes_total", "outcome=\"clock\"", "")               \
  FIGURE(kCounter, shares.failed, "shared_notes_failed_total", "",                                 \
         "Writes of shared notes that the store did not take, or did not acknowledge.")            \
  COUNTER(shares_taken_back, shares.taken_back, "shared_notes_taken_back_total", "",               \
          "Shared notes that were taken back.")                                                    \
  COUNTER(cached_checks, cache.checks, "cached_checks_total", "",                                  \
          "Checks answered from cached caps, without a read.")                                     \
  COUNTER(cached_verdicts, cache.verdicts, "cached_verdicts_total", "",                            \
          "Verdicts given from cached caps.")                                                      \
  COUNTER(certain_verdicts, certain_verdicts, "certain_verdicts_total", "",                        \
          "Verdicts that capped without the history, because they are certain without it.")        \
  FIGURE(kGauge, cache.caps, "cached_caps", "", "Cached caps.")                                    \
  COUNTER(unknown_frames, reads.unknown_frames, "unknown_frames_total", "",                        \
          "Frames of a newer format that were skipped in records.")                                \
  FIGURE(kGauge, rules.version, "rule_set_version", "", "Version of the rule set in use.")         \
  FIGURE(kGauge, rules.count, "rules", "", "Rules in use.")                                        \
  FIGURE(kCounter, rules.reloads, "rule_reloads_total", "", "Rule sets that were put into use.")   \
  FIGURE(kCounter, rules.reloads_refused, "rule_reloads_refused_total", "",                        \
         "Rule sets that were refused; the last good one stayed.")                                 \
  FIGURE(kGauge, rules.quarantined, "rules_quarantined", "",                                       \
         "Rules of the version in use that are wrong and not in force.")                           \
  FIGURE(kGauge, segments.version, "segment_set_version", "", "Version of the segments in use.")   \
  FIGURE(kGauge, segments.members, "segment_members", "", "Memberships over all stored segments.") \
  FIGURE(kGauge, segments.bytes, "segment_bytes", "", "Memory that stored segments take.")         \
  FIGURE(kCounter, segments.reloads, "segment_reloads_total", "",                                  \
         "Sets of segments that were put into use.")                                               \
  FIGURE(kCounter, segments.reloads_failed, "segment_reloads_failed_total", "",                    \
         "Loads of segments that failed; the last good set stayed.")

enum class CheckerCounter : std::uint8_t {
#define FCAP_SKIP(...)
#define FCAP_NAME(name, ...) name,
#define FCAP_NAMES(name, ...) name, name##_last = name + kReasonCount - 1,
  FCAP_CHECKER_STATS(FCAP_NAME, FCAP_SKIP, FCAP_SKIP)
  // CheckerStats does not show these as they are.
  // NOLINTBEGIN(readability-identifier-naming): named like those above
  checks_answered,
  calls_begun,
  calls_ended,
  calls_submitted,        ///< those that said so before they ended
  calls_submitted_ended,  ///< those of them that have ended, which calls_ended does not count
  FCAP_CHECKER_STATS(FCAP_SKIP, FCAP_NAMES, FCAP_SKIP)  // a cell for each reason
  end,
// NOLINTEND(readability-identifier-naming)
#undef FCAP_NAMES
#undef FCAP_NAME
#undef FCAP_SKIP
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(CheckerCounter::end);

/// Counters that many threads add to without meeting. Sums are not a snapshot of one instant.
///
/// Thread safety: all functions from any thread.
class Counters {
 public:
  /// Returns what this thread had counted before, or those that share its cell.
  std::uint64_t add(CheckerCounter counter, std::uint64_t amount = 1) noexcept {
    return amount == 0 ? 0 : add(counter, amount, std::memory_order_relaxed);
  }

  /// So many checks have ended alike: counted where that was without the history.
  void add_unjudged(Reason reason, std::uint64_t amount = 1) noexcept {
    if (reason != Reason::kPassed && reason != Reason::kCapped) {
      add(of(CheckerCounter::unjudged, reason), amount);
    }
  }

  /// So many hard calls have ended alike.
  void add_ended(Reason reason, bool unknown, std::uint64_t amount = 1) noexcept {
    add(of(CheckerCounter::hard_ended, reason), amount);
    if (unknown) add(CheckerCounter::hard_unknown, amount);
  }

  /// add() in the single total order of sequentially consistent operations. A call adds itself by
  /// this and then loads whether the Gate is closing; the destructor closes the Gate and then sums.
  /// So either the sum has the call, or the call sees the closed Gate. In a weaker order both could
  /// miss, and the destructor would free what the call goes on to use.
  void add_ordered(CheckerCounter counter) noexcept {
    const std::size_t slot = thread_slot::mine;
    if (slot >= kThreadSlots) [[unlikely]] {
      add_shared(counter, 1);
    } else {
      cell(slot, counter).fetch_add(1, std::memory_order_seq_cst);
    }
  }

  /// add() that also publishes what this thread did before; pairs with sum().
  void add_release(CheckerCounter counter) noexcept { add(counter, 1, std::memory_order_release); }

  [[nodiscard]] std::uint64_t sum(CheckerCounter counter) const noexcept {
    std::uint64_t total = 0;
    for (const auto& stripe : stripes_) {
      total += stripe.cells[static_cast<std::size_t>(counter)].load(std::memory_order_seq_cst);
    }
    return total;
  }

  /// Whether every call that had begun no longer needs the store. What has passed is summed before
  /// what has begun: a call that comes in between then only makes this false. In the other order,
  /// its end could stand in for a call that is still under way.
  [[nodiscard]] bool all_submitted() const noexcept {
    const std::uint64_t past =
        sum(CheckerCounter::calls_ended) + sum(CheckerCounter::calls_submitted);
    return sum(CheckerCounter::calls_begun) == past;
  }
  /// Whether every call that had begun has ended; as above.
  [[nodiscard]] bool all_ended() const noexcept {
    const std::uint64_t past =
        sum(CheckerCounter::calls_ended) + sum(CheckerCounter::calls_submitted_ended);
    return sum(CheckerCounter::calls_begun) == past;
  }

  /// Sets their fields.
  void copy_to(CheckerStats& stats) const noexcept {
#define FCAP_SKIP(...)
#define FCAP_COPY(name, field, ...) stats.field = sum(CheckerCounter::name);
#define FCAP_COPY_ALL(name, field, ...) copy_to(stats.field, CheckerCounter::name);
    FCAP_CHECKER_STATS(FCAP_COPY, FCAP_COPY_ALL, FCAP_SKIP)
#undef FCAP_COPY_ALL
#undef FCAP_COPY
#undef FCAP_SKIP
    // Worked out, since each counter costs a check an atomic addition.
    stats.capped = stats.candidates > stats.allowed ? stats.candidates - stats.allowed : 0;
  }

 private:
  /// That of a reason, where `first` is that of the first one.
  static constexpr CheckerCounter of(CheckerCounter first, Reason reason) noexcept {
    return static_cast<CheckerCounter>(static_cast<std::size_t>(first) +
                                       static_cast<std::size_t>(reason));
  }

  void copy_to(ReasonCounts& counts, CheckerCounter first) const noexcept {
    for (std::size_t i = 0; i < kReasonCount; ++i) {
      const auto reason = static_cast<Reason>(i);
      counts[reason] = sum(of(first, reason));
    }
  }

  struct alignas(kCacheLineBytes) CountersStripe {
    std::array<std::atomic<std::uint64_t>, kCounterCount> cells{};
  };

  /// For the threads that have no slot of their own.
  static constexpr std::size_t kSharedStripes = 8;

  std::uint64_t add(CheckerCounter counter, std::uint64_t amount,
                    std::memory_order order) noexcept {
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
  std::uint64_t add_shared(CheckerCounter counter, std::uint64_t amount) noexcept;

  std::atomic<std::uint64_t>& cell(std::size_t stripe, CheckerCounter counter) noexcept {
    return stripes_[stripe].cells[static_cast<std::size_t>(counter)];
  }

  std::array<CountersStripe, kThreadSlots + kSharedStripes> stripes_{};
};

/// Counts a call for as long as it may touch the Checker.
class CountedCall {
 public:
  explicit CountedCall(Counters& counters) noexcept : counters_(counters) {
    counters_.add_ordered(CheckerCounter::calls_begun);
  }
  ~CountedCall() {
    counters_.add_release(submitted_ ? CheckerCounter::calls_submitted_ended
                                     : CheckerCounter::calls_ended);
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

  /// The call does not go to the store from here on.
  void submitted() noexcept {
    if (!std::exchange(submitted_, true)) counters_.add_release(CheckerCounter::calls_submitted);
  }

 private:
  Counters& counters_;
  bool submitted_ = false;
};

/// A check's verdicts and its reason.
void count_result(Counters& counters, const CheckResult& result) noexcept;
/// How a read ended.
void count_read(Counters& counters, StoreCode code, bool stale) noexcept;

}  // namespace fcap::checker
