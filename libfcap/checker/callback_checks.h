#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include <fcap/checker.h>

#include "checker/answer_queue.h"
#include "checker/async_pick.h"
#include "checker/async_read.h"
#include "checker/callback_frame.h"
#include "checker/parts.h"
#include "checker/pool.h"

namespace fcap::checker {

/// The form of a check that answers by a callback.
///
/// Thread safety: all functions from any thread.
class CallbackChecks final : private ReadOwner {
 public:
  explicit CallbackChecks(SharedParts parts);
  ~CallbackChecks();
  CallbackChecks(const CallbackChecks&) = delete;
  CallbackChecks& operator=(const CallbackChecks&) = delete;

  /// Starts the answering threads, which hosts that never ask for callbacks have too: none is
  /// started in a call, where it could be refused.
  Status start();

  AsyncStart check_async(std::string_view user, std::span<const Candidate> candidates,
                         const CheckOptions& options, Checker::Callback callback) noexcept;
  struct DropReference {
    void operator()(AsyncRead* read) const noexcept { read->drop_reference(); }
  };
  using HeldRead = std::unique_ptr<AsyncRead, DropReference>;
  /// A shared page; `ask` is what the pick has copied. Null: it is answered.
  HeldRead pick_async(std::unique_ptr<AsyncPick> pick, const ReserveAsk& ask,
                      const CheckOptions& options) noexcept;
  /// Gives a page's answer to whoever has asked for it.
  void give(AsyncPick::Callback& callback, PagePicks page) noexcept;
  /// Answers kTimeout to what pick_async() has started, unless another thread answers it.
  void cut_off(AsyncRead& read) noexcept;

  /// Ends the answering threads. The store has ended, if it was the Checker's.
  void stop() noexcept;
  /// Answers kShutdown to what is pending after stop(). False: another thread runs a callback or
  /// still touches this, or a callback has started the next check, and this must be called again.
  [[nodiscard]] bool answer_pending() noexcept;
  /// Releases the rule sets that memory which is kept for the next check still holds. Otherwise a
  /// replaced set would stay alive until that memory is used again.
  void drop_rules() noexcept;
  void add_stats(CheckerStats& stats) const noexcept;

  /// Gives an answer on a thread of its own. False: the Checker is being destroyed.
  [[nodiscard]] bool queue_answer(QueuedAnswer& answer) noexcept;
  /// Runs a host's callback. Blocking calls in it are refused (CallbackFrame), what it throws ends
  /// here, and how long it keeps the thread is measured. What the callback holds may own the
  /// Checker, so it is to be destroyed within a CallbackFrame too.
  template <typename Call>
  void call_back(const Call& call) noexcept {
    const CallbackFrame frame(&parts_.gate);
    const std::chrono::nanoseconds begun = coarse_now();
    try {
      call();
    } catch (...) {
      note_thrown();
    }
    note_callback(coarse_now() - begun);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct alignas(kCacheLineBytes) PendingList {
    std::mutex mutex;
    AsyncRead* first = nullptr;
  };

  void note_outcome(const AsyncRead& read, const StoreOutcome& outcome) noexcept override;
  void hand_over(AsyncRead& read) noexcept override;
  void answer(AsyncRead& read, const ReadOutcome& outcome) noexcept override;
  void drop_canceled(AsyncRead& read) noexcept override;
  void forget(AsyncRead& read) noexcept override;

  [[nodiscard]] AsyncRead* prepared_read(std::string_view user,
                                         std::span<const Candidate> candidates,
                                         const CheckOptions& options,
                                         std::unique_ptr<AsyncPick>* pick = nullptr) noexcept;
  [[nodiscard]] HeldRead start(AsyncRead& read, Store::Deadline deadline) noexcept;
  /// start() of a check whose answer is returned where it is known at once; then `callback` is left
  /// to the caller.
  [[nodiscard]] AsyncStart start_or_answer(AsyncRead& read, Store::Deadline deadline,
                                           Checker::Callback& callback) noexcept;
  [[nodiscard]] AsyncStart answered_now(CheckResult answer) noexcept;
  [[nodiscard]] bool knows_answer(AsyncRead& read, std::size_t user_bytes,
                                  std::span<const Candidate> candidates,
                                  const CheckOptions& options);
  [[nodiscard]] bool submit(AsyncRead& read, Store::Deadline deadline) noexcept;
  [[nodiscard]] Store::Deadline deadline_of(const AsyncRead& read,
                                            const CheckOptions& options) const noexcept;
  void judge(AsyncRead& read, const ReadOutcome& outcome) noexcept;
  void refuse(AsyncRead& read, std::size_t candidate_count, Reason reason) noexcept;
  [[nodiscard]] CheckResult take_answer(AsyncRead& read) noexcept;
  [[nodiscard]] CheckResult answer_here(Reason reason, std::size_t candidate_count) noexcept;
  void count_answer(const CheckResult& result) noexcept;
  void finish(AsyncPick& pick) noexcept;
  void end(AsyncRead& read) noexcept;
  void run_callback(Checker::Callback& callback, CheckResult result) noexcept;
  [[nodiscard]] static std::chrono::nanoseconds coarse_now() noexcept;
  [[nodiscard]] bool has_executor() const noexcept { return parts_.options.executor != nullptr; }
  void note_thrown() noexcept;
  void note_callback(std::chrono::nanoseconds taken) noexcept;
  void remember(AsyncRead& read) noexcept;

  SharedParts parts_;
  std::array<PendingList, kStripeCount> pending_;
  Pool<AsyncRead>::Owner reads_;
  std::deque<AnswerQueue> answer_queues_;
  std::atomic<std::int64_t> callback_ns_max_{0};
  std::atomic<std::uint64_t> slow_callbacks_{0};
};

}  // namespace fcap::checker
