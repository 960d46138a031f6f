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
#include "checker/read_state.h"
#include "checker/verdicts.h"

namespace fcap::checker {

class AsyncRead;

/// Whoever starts AsyncReads. ReadState says until when it must stay for a read, and who may touch
/// it.
///
/// Thread safety: all functions from any thread.
class ReadOwner {
 public:
  /// The store has answered, and not too late.
  virtual void note_outcome(const AsyncRead& read, const StoreOutcome& outcome) noexcept = 0;
  /// Has run() called by the executor, or else by a thread of the owner's.
  virtual void hand_over(AsyncRead& read) noexcept = 0;
  /// The caller has claimed it: gives the answer, and ends it.
  virtual void answer(AsyncRead& read, const ReadOutcome& outcome) noexcept = 0;
  /// Does the same where nobody wants the answer.
  virtual void drop_canceled(AsyncRead& read) noexcept = 0;
  /// It is over. The owner may go before this has returned.
  virtual void forget(AsyncRead& read) noexcept = 0;

 protected:
  ~ReadOwner() = default;
};

/// One asynchronous check on its way. The store, the executor's task, the answer queue, the host's
/// CheckHandle and the list of pending ones hold a reference each; exactly one of them claims the
/// answer. The Checker may go while a store of the host's or an executor still holds a read.
class AsyncRead final : public StoreCompletion, public QueuedAnswer, public PoolNode<AsyncRead> {
 public:
  /// Who answers once the outcome is there.
  enum class Answerer : std::uint8_t {
    kStore,      ///< the store's thread, unless the call that asked is still under way
    kExecutor,   ///< the host's
    kAnyThread,  ///< whichever has the outcome: a batch's answer runs no code of the host's
  };

  /// Makes ready for one use, with one reference, which the caller gets.
  void prepare(ReadOwner& owner, Answerer answerer) noexcept;

  void complete(const StoreOutcome& outcome) noexcept override;

  void give() noexcept override {
    run();
    drop_reference();
  }

  /// Answers from what complete() has kept, unless somebody else has.
  void run() noexcept;
  /// Whether the callback will never run. False: it has run, runs, or is about to.
  [[nodiscard]] bool cancel() noexcept;
  /// For the owner, of a read that is claimed: the answer is given, or nobody wants it. Then what
  /// is the host's goes, before state.end().
  void drop_callback() noexcept;

  /// Copies the caller's segments.
  void keep(std::span<const std::string_view> asked);

  /// Sets how many references there are, instead of the caller's one, before anybody else knows of
  /// the read. One plain store costs less than adding them one by one.
  void share(std::uint32_t references) noexcept {
    references_.store(references, std::memory_order_relaxed);
  }
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept;
  [[nodiscard]] bool in_batch() const noexcept { return answerer_ == Answerer::kAnyThread; }

  ReadState state;

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
  void keep(const StoreOutcome& outcome) noexcept;

  ReadOwner* owner_ = nullptr;
  Answerer answerer_ = Answerer::kStore;
  std::atomic<std::uint32_t> references_{0};
};

}  // namespace fcap::checker
