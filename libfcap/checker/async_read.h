#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/checker.h>
#include <fcap/store.h>

#include "checker/pool.h"
#include "rules/evaluate.h"

namespace fcap::checker {

class Core;

/// One check_async() on its way. The store, the executor's task, the answer queue and the Core's
/// list of pending ones hold a reference each; exactly one of them claims the answer.
///
/// The Core may go while a store of the host's or an executor still holds a read. So the Core is
/// touched only by whoever has claimed the read, or by complete() between kTaken and kLeft, and
/// Core's destructor waits for both.
class AsyncRead final : public StoreCompletion, public PoolNode<AsyncRead> {
 public:
  /// Makes ready for one use, with one reference, which the caller gets.
  void prepare(Core& core) noexcept;

  void complete(const StoreOutcome& outcome) noexcept override;

  /// Answers from what complete() has kept, unless somebody else has.
  void run() noexcept;
  /// Claims the answer for the destructor; false when it is already given or being given.
  [[nodiscard]] bool claim_for_shutdown() noexcept;
  /// For whoever has claimed it for shutdown.
  void answer_shutdown() noexcept;
  /// For a read that never goes to a store: there will be no complete().
  void skip_store(Reason why) noexcept;

  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept;

  // The question. Candidates are hashed, the user and segments copied when it is asked.
  std::string user;
  std::vector<rules::CandidateKey> candidates;
  std::vector<std::string> segments;
  Instant now;
  Checker::Callback callback;
  std::string key;
  /// The answer, where the negative cache had it.
  std::optional<CheckResult> from_cache;

  /// check_async() is through with the store, so complete() is not running inside it.
  std::atomic<bool> submitted{false};
  /// Its place in the AnswerQueue.
  AsyncRead* next_waiting = nullptr;
  /// Its place in the Core's list, under that list's mutex.
  AsyncRead* next_pending = nullptr;
  AsyncRead* previous_pending = nullptr;
  std::size_t pending_stripe = 0;

 private:
  friend class Core;

  enum Phase : std::uint32_t {
    kTaken = 1,     ///< complete() has begun
    kClaimed = 2,   ///< somebody answers
    kAnswered = 4,  ///< the callback has run
    kLeft = 8,      ///< complete() does not touch the Core any more
  };

  [[nodiscard]] bool claim() noexcept;
  void answer(Reason reason, std::string_view record) noexcept;
  void leave() noexcept;

  Core* core_ = nullptr;
  std::string record_;
  Reason reason_ = Reason::kPassed;  // kPassed: judge by record_
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<std::uint32_t> references_{0};
};

}  // namespace fcap::checker
