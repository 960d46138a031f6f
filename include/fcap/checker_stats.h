#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fcap/health.h>
#include <fcap/reason.h>

namespace fcap {

/// How long something took. Durations are rounded up to whole microseconds.
struct LatencyHistogram {
  static constexpr std::size_t kBucketCount = 27;
  /// What bucket `i` has: durations of at most this, and more than that of the bucket before. The
  /// last one has everything else.
  [[nodiscard]] static constexpr std::chrono::microseconds upper_bound(std::size_t i) noexcept {
    return std::chrono::microseconds(std::int64_t{1} << i);
  }

  std::array<std::uint64_t, kBucketCount> counts{};
  std::chrono::nanoseconds sum{0};
};

/// A count for each Reason: `stats.unjudged[Reason::kTimeout]`.
class ReasonCounts {
 public:
  std::uint64_t& operator[](Reason reason) noexcept {
    return counts_[static_cast<std::size_t>(reason)];
  }
  std::uint64_t operator[](Reason reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)];
  }

 private:
  std::array<std::uint64_t, kReasonCount> counts_{};
};

/// Counters since the Checker was made; each is monotonic unless said otherwise.
struct CheckerStats {
  std::uint64_t checks = 0;            ///< users asked about
  std::uint64_t candidates = 0;        ///< candidates judged
  std::uint64_t allowed = 0;           ///< verdicts
  std::uint64_t capped = 0;            ///< verdicts
  std::uint64_t shadow_capped = 0;     ///< verdicts that a shadow rule would have capped
  std::uint64_t certain_verdicts = 0;  ///< capped without the history, by what is certain anyway
  std::uint64_t pending = 0;           ///< gauge: checks begun and not answered

  ReasonCounts unjudged = {};  ///< checks answered without the history: why

  struct Reads {
    std::uint64_t found = 0;           ///< users with a record
    std::uint64_t missing = 0;         ///< users of whom nothing is recorded
    std::uint64_t server_errors = 0;   ///< the server answered with an error
    std::uint64_t stale = 0;           ///< answered by a replica (RedisOptions::replica_reads)
    std::uint64_t unneeded = 0;        ///< checks for whose candidates no rule counts anything
    std::uint64_t unknown_frames = 0;  ///< frames skipped in records of a newer version
  } reads = {};

  /// Asynchronous checks.
  struct Async {
    std::uint64_t canceled = 0;
    std::uint64_t callbacks = 0;          ///< callbacks that have run
    std::uint64_t callback_ns_total = 0;  ///< nanoseconds spent in them, by a clock of a few ms
    std::uint64_t callback_ns_max = 0;    ///< gauge: of the slowest one so far, by that clock
    std::uint64_t answers_waiting = 0;  ///< gauge: known answers whose callbacks wait for a thread
  } async = {};

  /// Impressions that note_shown() has told of.
  struct Shown {
    std::uint64_t noted = 0;
    std::uint64_t confirmed = 0;  ///< since found in the ledger
    std::uint64_t displaced = 0;  ///< displaced by newer ones: raise local.shown_max
    std::uint64_t taken_back = 0;
    std::uint64_t kept = 0;  ///< gauge: impressions remembered
  } shown = {};

  /// Hard calls, and reserved pages.
  struct Hard {
    std::uint64_t calls = 0;
    ReasonCounts ended = {};      ///< how they ended
    std::uint64_t unknown = 0;    ///< of those: whether they have written is not known
    std::uint64_t conflicts = 0;  ///< exchanges that found another writer's record
  } hard = {};

  /// Shared notes: note_shown() with Note::kEverywhere, and shared pages.
  struct Shares {
    std::uint64_t shared = 0;     ///< sent to the store
    std::uint64_t unread = 0;     ///< not shared: the check had not read the record
    std::uint64_t no_room = 0;    ///< not shared: 64 live reservations, or a long record
    std::uint64_t no_config = 0;  ///< not shared: as Reason::kNoConfig and kUnavailable say
    std::uint64_t clock = 0;      ///< not shared: the clocks differ by more than 10 s
    std::uint64_t failed = 0;     ///< of those sent: the store did not take them, or did not say so
    std::uint64_t taken_back = 0;  ///< sent, and then taken back
  } shares = {};

  /// The negative cache.
  struct Cache {
    std::uint64_t checks = 0;    ///< checks answered without reading
    std::uint64_t verdicts = 0;  ///< verdicts that it has given
    std::uint64_t caps = 0;      ///< gauge: places in use
  } cache = {};

  struct Rules {
    std::uint64_t version = 0;  ///< gauge
    std::uint64_t count = 0;    ///< gauge
    std::uint64_t reloads = 0;  ///< rule sets taken
    std::uint64_t reloads_refused = 0;
    std::uint64_t quarantined = 0;  ///< gauge: rules that are wrong and not in force
    /// Gauge: since the rule set in use was last known to be the current one; -1 before the first.
    std::chrono::milliseconds age{-1};
  } rules = {};

  struct Segments {
    std::uint64_t version = 0;         ///< gauge
    std::uint64_t members = 0;         ///< gauge: memberships, over all stored segments
    std::uint64_t bytes = 0;           ///< gauge: memory that they take
    std::uint64_t reloads = 0;         ///< sets of segments taken
    std::uint64_t reloads_failed = 0;  ///< the last good set stayed
  } segments = {};

  /// Latencies, of one check in 16.
  struct Latencies {
    LatencyHistogram check;  ///< from the call to the answer
    LatencyHistogram store;  ///< of checks that read: from the call to the store's answer
  } latency = {};
};

/// How often a shadow rule would have capped: of several that stand in the way of a candidate, the
/// one with the smallest id counts.
struct ShadowCount {
  /// Empty: all rules beyond the first 1,000.
  std::string rule_id;
  std::uint64_t count = 0;
};

/// How a Checker is doing, for health endpoints and for people. stats() is for metrics.
struct CheckerHealth {
  /// Rules are loaded and the store answers: verdicts rest on the history.
  bool ready = false;
  StoreHealth store;
  bool has_rules = false;
  std::uint64_t rule_set_version = 0;
  std::uint64_t rule_count = 0;
  /// Since the rule set in use was last known to be the current one; -1 before the first.
  std::chrono::milliseconds rule_set_age{-1};
  std::string rules_source = {};  ///< "postgres", "snapshot", "host" or "none"
  std::string rules_error = {};   ///< why the latest look at the source failed; empty: it did not
  /// Rules that are wrong and therefore not in force, while the others are: the first 20, and why.
  std::vector<std::string> rules_quarantined = {};
  bool has_segments = false;
  std::uint64_t segment_set_version = 0;
  std::string segments_error = {};
  /// What keeps it from being ready, or is probably wrong all the same: one finding per line of
  /// text, each naming what to look at. Empty: nothing is known to be wrong.
  std::vector<std::string> problems = {};
};

}  // namespace fcap
