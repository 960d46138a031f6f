#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include <fcap/checker.h>

#include "checker/batch_answers.h"
#include "checker/callback_checks.h"
#include "checker/parts.h"
#include "checker/reserve_run.h"

namespace fcap::checker {

/// The forms of a hard call that go on by themselves, and answer by a callback or to a caller who
/// waits for many of them.
///
/// Thread safety: all functions from any thread.
class CallbackHardCalls {
 public:
  class ReservingCall;
  using Begun = std::weak_ptr<ReservingCall>;
  using Callback = std::variant<Checker::HardCallback, Checker::PageCallback, BatchSlot<HardResult>,
                                BatchSlot<PagePicks>>;

  CallbackHardCalls(SharedParts parts, CallbackChecks& async) : parts_(parts), async_(async) {}
  CallbackHardCalls(const CallbackHardCalls&) = delete;
  CallbackHardCalls& operator=(const CallbackHardCalls&) = delete;

  /// Begins a call; copies what the ask refers to. What it gives is for cut_off(): it expires once
  /// the call is answered and the store has let go of it.
  Begun begin(const ReserveAsk& ask, Callback callback) noexcept;
  /// Answers kTimeout to one that a batch has begun, unless another thread answers it.
  static void cut_off(const Begun& begun) noexcept;
  /// Checker::hard_batch().
  std::vector<HardResult> batch(std::span<const HardRequest> requests,
                                const HardOptions& options) noexcept;
  /// Calls for which not even an answer could be made.
  void count_overloaded(std::size_t count) noexcept;

  /// At the Checker's end: answers what does not run on another thread just now. False: some does,
  /// and this must be called again.
  [[nodiscard]] bool stop() noexcept;

 private:
  using Calls = std::list<std::shared_ptr<ReservingCall>>;

  /// Null: the callback is no batch's.
  [[nodiscard]] static const BatchTime* batch_of(const Callback& callback) noexcept;
  void call_back(Callback& callback, const ReserveRun& run) noexcept;
  void forget(ReservingCall& call) noexcept;

  SharedParts parts_;
  CallbackChecks& async_;
  std::mutex mutex_;
  Calls calls_;  // guarded by mutex_
};

}  // namespace fcap::checker
