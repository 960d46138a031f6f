#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include <fcap/checker.h>

#include "checker/async.h"
#include "checker/batch_answers.h"
#include "checker/parts.h"
#include "checker/reserve_run.h"

namespace fcap::checker {

/// The forms of a hard call that go on by themselves, and answer by a callback or to a caller who
/// waits for many of them.
///
/// Thread safety: all functions from any thread.
class AsyncReserving {
 public:
  using Callback = std::variant<Checker::ReserveCallback, Checker::PicksCallback,
                                BatchSlot<ReserveResult>, BatchSlot<ReservedPicks>>;

  AsyncReserving(Parts parts, Async& async) : parts_(parts), async_(async) {}
  AsyncReserving(const AsyncReserving&) = delete;
  AsyncReserving& operator=(const AsyncReserving&) = delete;

  /// Copies what the ask refers to.
  void start(const ReserveAsk& ask, Callback callback) noexcept {
    static_cast<void>(begin(ask, std::move(callback)));
  }
  /// Checker::reserve_batch(), release_batch() and record_batch().
  std::vector<ReserveResult> batch(ReserveAsk::Kind kind, std::span<const ReserveRequest> requests,
                                   const ReserveOptions& options) noexcept;
  /// Checker::pick_and_reserve_batch().
  std::vector<ReservedPicks> batch(std::span<const PageRequest> pages,
                                   const ReserveOptions& options) noexcept;

  /// At the Checker's end: answers what does not run on another thread just now. False: some does,
  /// and this must be called again.
  [[nodiscard]] bool stop() noexcept;

 private:
  class Call;
  using Calls = std::list<std::shared_ptr<Call>>;

  /// Null: the callback is no batch's.
  [[nodiscard]] static const BatchTime* batch_of(const Callback& callback) noexcept;
  /// For a batch: what is begun; expires once it is answered and the store has let go of it.
  std::weak_ptr<Call> begin(const ReserveAsk& ask, Callback callback) noexcept;
  /// Has all calls of a batch answered; `ask_of(i)` is what the i-th one asks for.
  template <typename Result, typename AskOf>
  std::vector<Result> answer_batch(std::size_t count, const ReserveOptions& options,
                                   const AskOf& ask_of) noexcept;
  void count_overloaded(std::size_t count) noexcept;
  void call_back(Callback& callback, const ReserveRun& run) noexcept;
  void forget(Call& call) noexcept;

  Parts parts_;
  Async& async_;
  std::mutex mutex_;
  Calls calls_;  // guarded by mutex_
};

}  // namespace fcap::checker
