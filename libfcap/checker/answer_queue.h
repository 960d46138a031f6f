#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include <fcap/status.h>

#include "base/thread.h"

namespace fcap::checker {

/// An answer that is known and only waits for a thread to be given on.
class QueuedAnswer {
 public:
  /// Called once, on the queue's thread; gives back the reference that the queue has had.
  virtual void give() noexcept = 0;

  QueuedAnswer* next_queued = nullptr;  ///< the queue's own

 protected:
  ~QueuedAnswer() = default;
};

/// A thread that gives the answers which are known before check_async() has returned (no user,
/// breaker open, a store that completes at once). So a callback never runs inside the call that
/// started it, where the host may hold a lock, and never on top of another.
///
/// It takes all that is given: what waits is memory that the check has already taken, and neither
/// the caller's stack nor its time is fcap's to use. Hosts that want answers without a queue in
/// between set CheckOptions::return_known.
///
/// Thread safety: push() and waiting() from any thread.
class AnswerQueue {
 public:
  AnswerQueue() = default;
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  /// Starts the thread (base/thread.h).
  Status start(base::ThreadHook hook);

  /// Takes over a reference to the answer. False: stopped, or not started, and the caller keeps it.
  [[nodiscard]] bool push(QueuedAnswer& answer) noexcept;

  [[nodiscard]] std::size_t waiting() const noexcept;

  /// Answers what waits, then ends the thread.
  void stop() noexcept;

 private:
  void run() noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  QueuedAnswer* first_ = nullptr;
  QueuedAnswer* last_ = nullptr;
  std::size_t waiting_count_ = 0;
  bool stopping_ = true;
  std::thread thread_;
};

}  // namespace fcap::checker
