#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/checker.h>
#include <fcap/store.h>

#include "checker/answer_queue.h"
#include "checker/async_pick.h"
#include "checker/pool.h"
#include "checker/question.h"
#include "checker/verdicts.h"

namespace fcap::checker {

class CallbackChecks;

/// One asynchronous check on its way. The store, the executor's task, the answer queue, the host's
/// CheckHandle and the list of pending ones hold a reference each; exactly one of them claims the
/// answer.
///
/// A store of the host's or an executor may hold a read for longer than the Checker lives. So only
/// two may touch the CallbackChecks: whoever has claimed the read, until end(), and complete(),
/// from kTaken to kLeft. The Checker's destructor waits for both.
class AsyncRead final : public StoreCompletion, public QueuedAnswer, public PoolNode<AsyncRead> {
 public:
  /// Makes ready for one use, with one reference, which the caller gets. `in_batch`: the answer
  /// runs no code of the host's, so it is given by whichever thread has it.
  void prepare(CallbackChecks& owner, bool in_batch) noexcept;

  void complete(const StoreOutcome& outcome) noexcept override;

  void give() noexcept override {
    run();
    drop_reference();
  }

  /// Answers from what complete() has kept, unless somebody else has.
  void run() noexcept;
  /// Claims the answer; false when it is already given or being given.
  [[nodiscard]] bool claim() noexcept;
  /// Claims the answer for somebody who does not wait for the store; false as above.
  [[nodiscard]] bool claim_early() noexcept;
  /// Whether the callback will never run. False: it has run, runs, or is about to.
  [[nodiscard]] bool cancel() noexcept;
  /// For whoever has claimed it: the answer is given, or nobody wants it.
  void end() noexcept;
  /// For a read that never goes to a store: there will be no complete().
  void skip_store() noexcept;
  /// The caller has left the store. True: the outcome is there already, and is the caller's to
  /// deal with.
  [[nodiscard]] bool leave_submit() noexcept;

  /// Copies the caller's segments.
  void keep(std::span<const std::string_view> asked);

  /// Before anybody else knows of the read: so many references instead of the caller's one. One
  /// plain store costs less than adding them one by one.
  void share(std::uint32_t references) noexcept {
    references_.store(references, std::memory_order_relaxed);
  }
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept;
  [[nodiscard]] bool in_batch() const noexcept { return in_batch_; }

  // --- The question; what it refers to is copied when it is asked.

  Question question;
  std::vector<std::string> segments;
  std::vector<std::string_view> segment_views;
  std::string key;
  Checker::Callback callback;
  /// What is asked instead of a check, and then has the answer and the callback; null: nothing.
  std::unique_ptr<AsyncPick> pick;
  std::chrono::steady_clock::time_point begun;
  bool timed = false;

  // --- The answer.

  CheckResult result;
  /// Has room for all verdicts from the beginning, in case that there is no memory later on. Kept
  /// for the next use, and not for the usual answer: the memory for that is taken when it is given,
  /// because what was taken for another check a moment ago is still in the processor's cache.
  std::vector<Verdict> spare;
  /// `result` is the answer already; there is nothing to judge.
  bool answered = false;
  /// What the store has said; kPassed: judge by `record`.
  Reason reason = Reason::kPassed;
  std::string record;
  bool stale = false;
  bool found = false;
  [[nodiscard]] ReadOutcome kept_outcome() const noexcept {
    return {.reason = reason, .record = record, .stale = stale, .found = found};
  }

  /// Its place among those that are claimed at the end.
  AsyncRead* next_waiting = nullptr;
  /// Its place in the list of pending ones, under that list's mutex.
  AsyncRead* next_pending = nullptr;
  AsyncRead* previous_pending = nullptr;
  std::size_t pending_stripe = 0;

 private:
  enum ReadPhase : std::uint32_t {
    kTaken = 1,       ///< complete() has begun
    kClaimed = 2,     ///< somebody answers
    kEnded = 4,       ///< the callback has run
    kLeft = 8,        ///< complete() does not touch the CallbackChecks any more
    kSubmitted = 16,  ///< the call that asked has returned from the store
    kKept = 32,       ///< complete() has kept the outcome
  };

  /// complete() where the call that asked is still under way, or an executor answers.
  void complete_early(const StoreOutcome& outcome) noexcept;
  void keep(const StoreOutcome& outcome) noexcept;
  void leave() noexcept;

  CallbackChecks* owner_ = nullptr;
  bool in_batch_ = false;
  bool by_executor_ = false;
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<std::uint32_t> references_{0};
};

}  // namespace fcap::checker
