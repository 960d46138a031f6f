#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/check_handle.h>
#include <fcap/check_options.h>
#include <fcap/checker_options.h>
#include <fcap/checker_stats.h>
#include <fcap/explain.h>
#include <fcap/export.h>
#include <fcap/hard.h>
#include <fcap/impression.h>
#include <fcap/page.h>
#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>
#include <fcap/subject.h>
#include <fcap/unique_function.h>
#include <fcap/verdict.h>

namespace fcap {

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
/// **An event id must be unique across requests and over all users who share a ledger, within the
/// retention, and chosen by the host, not by the public: another impression under it repeats the
/// first, is allowed and not counted. OpenRTB's imp.id alone is neither** ("1" in most bid
/// requests): use a signed id (signed_id.h), or the host's own request id with imp.id.
///
/// Thread safety: all functions may be called from any thread at once, as long as the destructor
/// has not returned. Blocking: check(), explain(), first_allowed(), hard(), pick()
/// and all batches block until the answer or the deadline; everything else but create(),
/// wait_ready() and the destructor returns at once. Callers share a few connections. Failure: no
/// function but shadow_counts() throws. Where Redis is slow, gone or unreadable, verdicts are
/// "allowed" with the reason (unless fail_open is false). In a forked child, checks answer kForked.
/// Out of memory (or where CheckerOptions::clock throws) they answer kOverloaded, with a verdict
/// for each candidate if there is room; if an I/O thread has none for itself, the process ends.
class FCAP_EXPORT Checker {
 public:
  /// Receives the answer of check_async(), exactly once. Must not block, throw, or start a blocking
  /// check on this Checker (which would be answered kReentrant); check_async() is allowed. The same
  /// goes for the end of what it holds, which may be the last owner of the Checker. One that
  /// takes long keeps the answers to other checks waiting: use an executor.
  using Callback = UniqueFunction<void(CheckResult)>;

  /// Starts the I/O threads and the refresh of rules and segments. Waits for their first load for
  /// at most 5 s. Without rules it still succeeds and answers kNoRules until there are some;
  /// without segments nobody is in one, but for what callers say. Fails on options outside their
  /// ranges (the status names the field), and where memory runs out.
  static Result<std::unique_ptr<Checker>> create(CheckerOptions options);

  /// Completes everything pending (kShutdown, or the answer that has just arrived), waits for
  /// running callbacks and for all calls that have begun on other threads, and joins the threads.
  /// Meanwhile health() is not ready. Callbacks may start further checks, which answer kShutdown;
  /// they must stop at that. No call may begin after it has returned. Must not be called from a
  /// callback. Waits for no server, but for libpq if it looks up rules.postgres without `hostaddr`.
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// Judges each candidate by itself. One read from the store, however many candidates and rules;
  /// none where no rule with a limit above 0 could apply to any of them.
  CheckResult check(const Subject& subject, std::span<const Candidate> candidates,
                    const CheckOptions& options = {}) noexcept;

  /// check() for many users at once, under one deadline; the reads travel together. Results are in
  /// the order of `requests`; what is not judged by the deadline answers kTimeout. At most an
  /// eighth of the store's queue is under way at a time. Out of memory, the list may be empty.
  std::vector<CheckResult> check_batch(std::span<const CheckRequest> requests,
                                       const CheckOptions& options = {}) noexcept;

  /// The first `k` of the ranked candidates that may be shown together: each pick counts as shown
  /// when the later ones are judged. Fewer than `k` when no more pass.
  PickResult first_allowed(const Subject& subject, std::span<const Candidate> ranked, std::size_t k,
                           const CheckOptions& options = {}) noexcept;

  /// Why check() answers as it does: explain.h. For support cases, not for the path of a request.
  Explanation explain(const Subject& subject, std::span<const Candidate> candidates,
                      const CheckOptions& options = {}) noexcept;

  /// check() for event-loop hosts: returns at once and calls `callback` later, on an I/O thread or
  /// through the executor. The user and candidates are copied. The callback runs inside this call
  /// only where no other thread can run it: in a forked child, and when memory has run out. Answers
  /// that are known at once (no user, no rules, nothing to read, breaker open, link down, queue
  /// full) have threads of their own and an unbounded queue: a host that starts checks faster than
  /// its callbacks end, or can go on by itself, should set CheckOptions::return_known. Then they
  /// are returned, and `callback` is destroyed without being called.
  AsyncStart check_async(const Subject& subject, std::span<const Candidate> candidates,
                         const CheckOptions& options, Callback callback) noexcept;

  /// Tells of an impression that has just been shown, so that checks count it at once rather than
  /// when it has come back through Kafka. Never blocks on the store. False where it is not
  /// remembered: no user, an id over 256 bytes, an empty event id, switched off, a forked child, or
  /// no memory.
  ///
  /// Note::kHere: the checks of this process count it until the ledger has an event of this id, for
  /// at most LocalOptions::shown_for. Calling again with the same event id changes nothing.
  ///
  /// Note::kEverywhere: all other servers count it as well, from their next read of this user on:
  /// for five minutes, until the ledger has its event, or until it is taken back. Calling again
  /// counts it once as well, but is another write, and its five minutes begin again. It needs the
  /// token of its check, and takes one write, for which nobody waits. Only this process notes it,
  /// and CheckerStats::shares counts why, where the check has not read the record, or has seen 64
  /// live reservations or three quarters of the longest record in it; where the updater's
  /// configuration is not in Redis; and where this machine's clock is over 10 s away from Redis'.
  /// Two servers that ask at the same instant do not see each other's notes; a reservation has no
  /// such gap.
  bool note_shown(const Impression& shown, Note note = Note::kHere) noexcept;

  /// Takes back what note_shown() has said, where the impression could not be published after all;
  /// a shared note everywhere, by a write for which nobody waits. False: this process does not
  /// remember it (any more), and nothing was taken back. A shared note can then still be released
  /// (HardCall::kRelease).
  bool take_back_shown(const Impression& shown) noexcept;

  // --- Hard caps. Each call says what it decides to Redis before it answers, by an exchange that
  // succeeds only if nobody else has written the user's record meanwhile; so a limit is never
  // exceeded, whoever races for it (docs/guarantees.md says under which conditions). All of them
  // block as check() does, fail closed (HardOptions::allow_undecided), never read a replica, and
  // need an account that may write users' records. They count impressions.

  /// Reserves, releases or records the place of one impression: HardCall says what each does. The
  /// impression must be published with HardResult::time as its timestamp.
  HardResult hard(const HardRequest& request, const HardOptions& options = {}) noexcept;

  /// hard() for many impressions at once, under one deadline: they travel together, and none waits
  /// for another. The results are in the order of the requests. Those undecided at the deadline
  /// answer kTimeout. A batch is started as a whole, so it should be well below
  /// RedisOptions::queue_operations_max (in a cluster, below one node's share of it): requests
  /// without room there answer kOverloaded, and have written nothing unless they say `unknown`.
  /// Those of one user race for its record as several servers do. Out of memory, the list may be
  /// empty.
  std::vector<HardResult> hard_batch(std::span<const HardRequest> requests,
                                     const HardOptions& options = {}) noexcept;

  /// Receives the answer of hard_async(), exactly once; as Callback.
  using HardCallback = UniqueFunction<void(HardResult)>;
  /// hard() for event-loop hosts: returns at once and calls `callback` later, where check_async()
  /// does. All arguments are copied. What has been started cannot be canceled; a reservation can be
  /// released.
  void hard_async(const HardRequest& request, const HardOptions& options,
                  HardCallback callback) noexcept;

  // --- Pages: several slots at once.

  /// Chooses for the slots of one page, and shares or reserves the picks: Promise says what that
  /// means. Each slot gets the first ranked candidate that passes, each candidate once, all picks
  /// counted. What the record holds under a slot's event id when a page is reserved is its pick, a
  /// candidate or not (Pick::held_by_other); so a repetition gives the first answer. PageRequest
  /// says what a page costs.
  PagePicks pick(const PageRequest& page, const PageOptions& options = {}) noexcept;

  /// pick() for many users at once, as hard_batch() is. Shared pages for which the store's queue
  /// has no room are picked without the history. Pages of one user may miss each other's picks if
  /// they are shared, and race for its record if they are reserved: a page's slots belong in one
  /// PageRequest.
  std::vector<PagePicks> pick_batch(std::span<const PageRequest> pages,
                                    const PageOptions& options = {}) noexcept;

  /// Receives the answer of pick_async(), exactly once; as Callback.
  using PageCallback = UniqueFunction<void(PagePicks)>;
  /// pick() for event-loop hosts, as hard_async(). Shared picks can be taken back.
  void pick_async(const PageRequest& page, const PageOptions& options,
                  PageCallback callback) noexcept;

  /// Replaces the current rule set. Checks that are running keep the one they have. A set that has
  /// been replaced and that nobody uses any more is destroyed on a thread of the Checker's own,
  /// never on one that checks or that destroys a result.
  void set_rules(std::shared_ptr<const RuleSet> rules) noexcept;
  /// The rule set in use; null before the first.
  [[nodiscard]] std::shared_ptr<const RuleSet> rules() const noexcept;

  /// Does the same for the stored segments; null removes them.
  void set_segments(std::shared_ptr<const SegmentSet> segments) noexcept;
  /// The stored segments in use; null before the first.
  [[nodiscard]] std::shared_ptr<const SegmentSet> segments() const noexcept;

  [[nodiscard]] CheckerStats stats() const noexcept;
  /// CheckerStats::shadow_capped by rule, in the order of the ids, since the Checker was made. At
  /// most about 1,000. Empty in a forked child. Throws std::bad_alloc.
  [[nodiscard]] std::vector<ShadowCount> shadow_counts() const;

  /// Never blocks on a server. When memory has run out, only `ready` is filled in.
  [[nodiscard]] CheckerHealth health() const noexcept;

  /// Waits until health() says ready. False: not in time, or not before the destructor begins.
  [[nodiscard]] bool wait_ready(std::chrono::milliseconds timeout) const noexcept;

 private:
  friend struct Scrape;  // prometheus_text()
  class Impl;
  explicit Checker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fcap
