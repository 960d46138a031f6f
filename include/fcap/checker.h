#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/redis_options.h>
#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/verdict.h>

namespace fcap {

/// Where the rules come from. The first source that answers is used; a set of rules given by
/// Checker::set_rules() needs none.
struct RuleSourceOptions {
  /// A libpq connection string; empty: PostgreSQL is not used.
  std::string postgres = {};
  /// A checksummed snapshot. With `postgres`: written after each load, read when PostgreSQL is
  /// gone. Alone: the source itself, read again when it changes. Empty: none.
  std::string snapshot_file = {};
  /// How often the version is looked at, give or take a tenth of it. 1 s to 1 h.
  std::chrono::milliseconds poll_interval{60'000};
  /// Also LISTEN, so that changes arrive at once. Holds a connection: for few processes.
  bool listen = false;
  /// A reload with fewer rules than this share of the last one is refused. 0 to 1; 0: never.
  double shrink_refused_below = 0.5;
  /// Take an empty or sharply shrunken rule set all the same.
  bool accept_any_shrink = false;
};

/// Where stored segments come from; docs/segments.md describes both. Looked at as often as the
/// rules. At most one of the two; neither: there are those of Checker::set_segments() alone.
struct SegmentSourceOptions {
  /// The tables of the database that RuleSourceOptions::postgres names.
  bool postgres = false;
  /// A directory of files: NAME.ids, a user id a line, and NAME.roaring64, bitmaps. Empty: none.
  std::string directory = {};
};

/// What a Checker remembers by itself, beside the store. Bounded; nothing of it outlives the
/// process.
struct LocalOptions {
  /// Impressions that note_shown() keeps at most, about 250 bytes each; the oldest make room. For n
  /// impressions a second that the process serves, n times `shown_for`. 0: note_shown() does
  /// nothing. At most 10 million.
  std::size_t shown_max = 100'000;
  /// How long an impression that does not turn up in the ledger is believed in. 1 s to 1 h.
  std::chrono::milliseconds shown_for{60'000};
  /// Capped verdicts that are kept until the instant at which they could end, 64 bytes each: a
  /// check whose candidates are all among them is answered without reading, and through an outage
  /// they stay capped. Exact (docs/semantics.md). 0: none are kept. At most 100 million.
  std::size_t cached_caps_max = 0;
  /// The longest that one is kept: for so long may the erasure of a user go unnoticed. 1 s to 24 h.
  std::chrono::milliseconds cached_caps_for{60'000};
};

/// How a Checker behaves. Every field has the value that suits most hosts.
struct CheckerOptions {
  /// What to do where no user id is given, or a null one.
  enum class NoUserPolicy : std::uint8_t { kAllow, kCap };

  // --- Parts.

  RedisOptions redis = {};
  /// Used instead of Redis where given.
  std::shared_ptr<Store> store = {};
  RuleSourceOptions rules = {};
  SegmentSourceOptions segments = {};

  // --- Behaviour. Key prefix and retention must be the updater's.

  /// Keys are "<key_prefix>:{<user id>}". No braces.
  std::string key_prefix = "fcap";
  /// How long events are kept; 1 h to 400 days.
  std::chrono::milliseconds retention = std::chrono::days{32};
  /// User ids that stand for "unknown"; neither read nor written. The empty id always does.
  std::vector<std::string> null_user_ids = {"00000000-0000-0000-0000-000000000000"};
  NoUserPolicy no_user = NoUserPolicy::kAllow;
  /// Where the history cannot be had: true allows (fail-open), false caps.
  bool fail_open = true;
  /// The longest that check() takes to answer, where CheckOptions has none. 100 µs to 60 s.
  std::chrono::microseconds deadline{5000};
  LocalOptions local = {};

  // --- Seams.

  /// Runs completion callbacks; empty: they run on an I/O thread.
  std::function<void(std::function<void()>)> executor = {};
  /// The time of a check that gives none; empty: the system clock.
  std::function<Instant()> clock = {};
  LogCallback log = {};
};

/// What one check may set. The views must outlive the call.
struct CheckOptions {
  /// From the call to the answer; absent: the Checker's.
  std::optional<std::chrono::microseconds> deadline = {};
  /// The instant to judge at; absent: the Checker's clock.
  std::optional<Instant> now = {};
  /// Segments that the caller knows the user to be in, besides the stored ones.
  std::span<const std::string_view> segments = {};
};

/// One user's part of a batch.
struct UserCandidates {
  std::string_view user;
  std::span<const Candidate> candidates;
};

/// Counters since the Checker was made; each is monotonic unless said otherwise.
struct CheckerStats {
  std::uint64_t checks = 0;         ///< users asked about
  std::uint64_t candidates = 0;     ///< candidates judged
  std::uint64_t allowed = 0;        ///< verdicts
  std::uint64_t capped = 0;         ///< verdicts
  std::uint64_t shadow_capped = 0;  ///< verdicts that a shadow rule would have capped
  /// Checks answered without the history, by Reason.
  std::uint64_t no_user = 0;
  std::uint64_t no_rules = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t breaker_open = 0;
  std::uint64_t overloaded = 0;
  std::uint64_t undecodable = 0;
  std::uint64_t forked = 0;
  std::uint64_t invalid = 0;
  // --- Local accuracy.
  std::uint64_t shown_noted = 0;      ///< note_shown() calls that were taken
  std::uint64_t shown_confirmed = 0;  ///< of these, since found in the ledger
  std::uint64_t shown_displaced = 0;  ///< pushed out by newer ones: raise local.shown_max
  std::uint64_t shown_kept = 0;       ///< gauge: impressions remembered
  std::uint64_t cached_checks = 0;    ///< checks answered without reading
  std::uint64_t cached_verdicts = 0;  ///< verdicts given by the negative cache
  std::uint64_t cached_caps = 0;      ///< gauge: places of the negative cache in use

  std::uint64_t unknown_frames = 0;    ///< frames skipped in records of a newer version
  std::uint64_t pending = 0;           ///< gauge: checks begun and not answered
  std::uint64_t rule_set_version = 0;  ///< gauge
  std::uint64_t rule_count = 0;        ///< gauge
  std::uint64_t rule_reloads = 0;      ///< rule sets taken
  std::uint64_t rule_reloads_refused = 0;
  std::uint64_t segment_set_version = 0;     ///< gauge
  std::uint64_t segment_members = 0;         ///< gauge: memberships, over all stored segments
  std::uint64_t segment_bytes = 0;           ///< gauge: memory that they take
  std::uint64_t segment_reloads = 0;         ///< sets of segments taken
  std::uint64_t segment_reloads_failed = 0;  ///< the last good set stayed
  /// Gauge: since the rule set in use was last known to be the current one; -1 before the first.
  std::chrono::milliseconds rule_set_age{-1};
};

/// Answers "which of these candidates has this user already seen enough of?".
///
///     auto made = fcap::Checker::create({.redis = {.addresses = {"10.0.0.5:6379"}},
///                                        .rules = {.postgres = "dbname=fcap"}});
///     if (!made.ok()) return fail(made.status().text());
///     fcap::Checker& checker = *made.value();
///     const fcap::Candidate candidates[] = {{"c1"}, {"c2", "cr7"}};
///     fcap::CheckResult result = checker.check("u123", candidates);
///     if (result.verdicts[0].allowed) serve("c1");
///
/// Thread safety: all functions but the destructor may be called from any thread at once.
/// Blocking: check(), check_batch() and first_allowed() block until the answer or the deadline;
/// everything else returns at once. Callers share a few connections; there is never one per thread.
/// Failure: no function throws. Where Redis is slow, gone or unreadable, the verdicts are "allowed"
/// with the reason (unless fail_open is false). In a forked child every check answers kForked.
class FCAP_EXPORT Checker {
 public:
  /// Receives the answer of check_async(), exactly once. Must not block, throw, or start a blocking
  /// check on this Checker (which would be answered kReentrant); check_async() is allowed.
  using Callback = std::function<void(CheckResult)>;

  /// Starts the I/O threads and the refresh of rules and segments. Waits for their first load for
  /// at most 5 s. Without rules it still succeeds and answers kNoRules until there are some;
  /// without segments nobody is in one, but for what callers say. Fails on options outside their
  /// ranges; the status names the field.
  static Result<std::unique_ptr<Checker>> create(CheckerOptions options);

  /// Completes everything pending (kShutdown, or the answer that has just arrived), waits for
  /// running callbacks, and joins the threads. Must not be called from a callback.
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// Judges each candidate by itself. One read from the store, however many candidates and rules.
  CheckResult check(std::string_view user, std::span<const Candidate> candidates,
                    const CheckOptions& options = {}) noexcept;

  /// check() for many users at once, under one deadline; the reads travel together. The results are
  /// in the order of `users`.
  std::vector<CheckResult> check_batch(std::span<const UserCandidates> users,
                                       const CheckOptions& options = {}) noexcept;

  /// The first `k` of the ranked candidates that may be shown together: each pick counts as shown
  /// when the later ones are judged. Fewer than `k` when no more pass.
  PickResult first_allowed(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                           const CheckOptions& options = {}) noexcept;

  /// check() for event-loop hosts: returns at once and calls `callback` later, on an I/O thread or
  /// through the executor. The user and candidates are copied.
  void check_async(std::string_view user, std::span<const Candidate> candidates,
                   const CheckOptions& options, Callback callback) noexcept;

  /// Says that this process has just shown an impression, so that its own checks count it at once
  /// rather than when it has come back through Kafka: until the ledger has an event of this id, for
  /// at most LocalOptions::shown_for. `event_id` is the one that is published (event_id, or else
  /// imp_id), `at` its timestamp; absent: the Checker's clock. Calling again with the same id
  /// changes nothing. Never blocks on the store. False where it is not remembered: no user, an id
  /// over 256 bytes, an empty event id, switched off, a forked child, or no memory.
  bool note_shown(std::string_view user, const Candidate& shown, std::string_view event_id,
                  std::optional<Instant> at = {}) noexcept;

  /// Puts a rule set in place of the current one. Checks that are running keep the one they have.
  void set_rules(std::shared_ptr<const RuleSet> rules) noexcept;

  /// The rule set in use; null before the first.
  [[nodiscard]] std::shared_ptr<const RuleSet> rules() const noexcept;

  /// Puts stored segments in place of the current ones (null: of none). Checks that are running
  /// keep those they have.
  void set_segments(std::shared_ptr<const SegmentSet> segments) noexcept;

  /// The stored segments in use; null before the first.
  [[nodiscard]] std::shared_ptr<const SegmentSet> segments() const noexcept;

  [[nodiscard]] CheckerStats stats() const noexcept;

 private:
  class Impl;
  explicit Checker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fcap
