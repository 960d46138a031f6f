#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/checker.h>

#include "checker/answer_queue.h"
#include "checker/async_read.h"
#include "checker/counters.h"
#include "checker/current_rules.h"
#include "checker/fork_guard.h"
#include "checker/judge.h"
#include "checker/negative_cache.h"
#include "checker/pool.h"
#include "checker/read_group.h"
#include "checker/shown_events.h"
#include "config/rule_refresher.h"
#include "config/segment_refresher.h"

namespace fcap::checker {

/// What a Checker is made of. checker.h is its contract.
class Core {
 public:
  /// Throws std::bad_alloc and std::system_error. `store` is not null.
  Core(CheckerOptions options, std::shared_ptr<Store> store);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Begins to follow the sources of rules and segments, if there are any. Not ok: a setting of
  /// theirs is wrong.
  Status start_sources();

  /// Whether destroying it would hang or harm: in a forked child its threads do not exist and its
  /// sockets are shared with the parent; inside a callback it would wait for itself.
  [[nodiscard]] bool must_leak() const noexcept;

  CheckResult check(std::string_view user, std::span<const Candidate> candidates,
                    const CheckOptions& options) noexcept;
  std::vector<CheckResult> check_batch(std::span<const UserCandidates> users,
                                       const CheckOptions& options) noexcept;
  PickResult first_allowed(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                           const CheckOptions& options) noexcept;
  void check_async(std::string_view user, std::span<const Candidate> candidates,
                   const CheckOptions& options, Checker::Callback callback) noexcept;
  bool note_shown(std::string_view user, const Candidate& shown, std::string_view event_id,
                  std::optional<Instant> at) noexcept;
  void set_rules(std::shared_ptr<const RuleSet> rules) noexcept;
  [[nodiscard]] std::shared_ptr<const RuleSet> rules() const noexcept;
  void set_segments(std::shared_ptr<const SegmentSet> segments) noexcept;
  [[nodiscard]] std::shared_ptr<const SegmentSet> segments() const noexcept;
  [[nodiscard]] CheckerStats stats() const noexcept;

  // --- For AsyncRead.

  [[nodiscard]] bool has_executor() const noexcept { return options_.executor != nullptr; }
  /// Has the read answered by the executor, or else the answer queue.
  void hand_over(AsyncRead& read) noexcept;
  /// Judges, and runs the callback. `reason` other than kPassed: there is no record to judge by.
  void answer(AsyncRead& read, Reason reason, std::string_view record) noexcept;
  /// Takes the read off the list of pending ones.
  void forget(AsyncRead& read) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  struct alignas(kCacheLineBytes) PendingList {
    std::mutex mutex;
    AsyncRead* first = nullptr;
  };

  // core.cc
  Status start_rules(Clock::time_point until);
  std::shared_ptr<const SegmentSet> swap_segments(
      std::shared_ptr<const SegmentSet> segments) noexcept;
  void take_segments(std::shared_ptr<const SegmentSet> segments) noexcept;
  void let_go_of_old() noexcept;
  void warn_of_segments() const noexcept;
  void add_segment_stats(CheckerStats& stats) const noexcept;
  [[nodiscard]] Reason refuse_user(std::string_view user) const noexcept;
  [[nodiscard]] Reason refuse_blocking() const noexcept;
  [[nodiscard]] bool allows(Reason reason) const noexcept;
  [[nodiscard]] Instant instant_of(const CheckOptions& options) const;
  [[nodiscard]] Clock::time_point deadline_of(const CheckOptions& options) const noexcept;
  void note_undecodable() noexcept;
  void count_reason(Reason reason) noexcept;
  void count_result(const CheckResult& result) noexcept;

  // core_check.cc
  CheckResult checked(std::string_view user, std::span<const Candidate> candidates,
                      const CheckOptions& options, CallInside& inside);
  std::vector<CheckResult> batch_checked(std::span<const UserCandidates> users,
                                         const CheckOptions& options, CallInside& inside);
  PickResult picked(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                    const CheckOptions& options, CallInside& inside);
  [[nodiscard]] PickResult first_of(const CheckResult& result, std::size_t k);
  void count_picks(std::size_t judged, std::size_t picked) noexcept;
  void refuse(std::size_t candidate_count, Reason reason, CheckResult& result);
  void judge_record(const Asked& asked, Reason reason, std::string_view record,
                    CheckResult& result);
  [[nodiscard]] Reason load(Scratch& scratch, std::string_view user, Reason reason,
                            std::string_view record);

  // core_local.cc
  void add_shown(Scratch& scratch, std::string_view user);
  [[nodiscard]] bool answer_from_cache(std::string_view user, std::span<const Candidate> candidates,
                                       Instant now, const CheckOptions& options,
                                       CheckResult& result);
  void keep_caps(const Scratch& scratch, const Asked& asked, const CheckResult& result) noexcept;
  void put_cached_caps(Scratch& scratch, const Asked& asked, CheckResult& result);

  // core_async.cc
  [[nodiscard]] AsyncRead* prepared_read(std::string_view user,
                                         std::span<const Candidate> candidates,
                                         const CheckOptions& options) noexcept;
  void submit(AsyncRead& read, std::string_view user, Clock::time_point deadline) noexcept;
  void run_callback(const Checker::Callback& callback, CheckResult result) noexcept;
  void remember(AsyncRead& read) noexcept;
  void answer_pending() noexcept;
  [[nodiscard]] bool any_pending() noexcept;

  Counters counters_;
  std::array<PendingList, kStripeCount> pending_;
  CheckerOptions options_;
  std::set<std::string, std::less<>> null_user_ids_;
  ForkGuard fork_guard_;
  CurrentRules current_rules_;
  std::atomic<Clock::rep> rules_set_at_{0};
  std::atomic<std::uint64_t> rules_set_count_{0};
  std::atomic<std::uint64_t> segments_set_count_{0};
  std::atomic<std::uint64_t> undecodable_logged_{0};

  std::unique_ptr<ShownEvents> shown_;    // null: switched off
  std::unique_ptr<NegativeCache> cache_;  // null: switched off
  Pool<Scratch>::Owner scratches_;
  Pool<ReadGroup>::Owner read_groups_;
  Pool<AsyncRead>::Owner async_reads_;
  AnswerQueue answer_queue_;

  std::shared_ptr<Store> store_;
  std::unique_ptr<config::RuleRefresher> refresher_;
  std::unique_ptr<config::SegmentRefresher> segment_refresher_;
  std::atomic<bool> have_rules_{false};
  std::atomic<bool> closing_{false};
};

}  // namespace fcap::checker
