#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "base/thread.h"

namespace fcap::checker {

class AsyncRead;

/// A thread that gives the answers which are known before check_async() has returned (no user,
/// breaker open, a store that completes at once). So a callback never runs inside the call that
/// started it, where the host may hold a lock, and never on top of another.
///
/// Thread safety: push() from any thread.
class AnswerQueue {
 public:
  AnswerQueue() = default;
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  /// Starts the thread (base/thread.h). Throws std::system_error.
  void start(base::ThreadHook hook);

  /// Takes over a reference to the read. False: full or stopped, and the caller keeps it. A caller
  /// that is itself in a callback (`urgent`) finds it never full, because it cannot answer either.
  [[nodiscard]] bool push(AsyncRead& read, bool urgent) noexcept;

  /// Answers what waits, then ends the thread.
  void stop() noexcept;

 private:
  static constexpr std::size_t kWaitingMax = 65'536;

  void run() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  AsyncRead* first_ = nullptr;
  AsyncRead* last_ = nullptr;
  std::size_t waiting_count_ = 0;
  bool stopping_ = true;
  std::thread thread_;
};

}  // namespace fcap::checker
