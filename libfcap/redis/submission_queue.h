#pragma once

#include <atomic>

#include "redis/client.h"

namespace fcap::redis {

/// Passes requests from many threads to one I/O thread: a stack of the requests themselves, which
/// is detached as a whole and reversed. No thread allocates, locks or waits. A mark at the bottom
/// says that the I/O thread sleeps: the submitter that replaces the mark has to wake it.
class SubmissionQueue {
 public:
  /// From any thread. Whether the consumer sleeps and must be woken by this caller.
  [[nodiscard]] bool push(Request& request) noexcept {
    // The exchange releases the request's contents to take_all(). If it were relaxed, the I/O
    // thread could send a request before it sees all that the caller has written there.
    Request* top = top_.load(std::memory_order_relaxed);
    do {
      request.next_submitted = top == sleep_mark() ? nullptr : top;
    } while (!top_.compare_exchange_weak(top, &request, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    return top == sleep_mark();
  }

  /// Consumer: everything pushed so far, oldest first, linked by next(); null when there is none.
  [[nodiscard]] Request* take_all() noexcept {
    if (top_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Request* newest = top_.exchange(nullptr, std::memory_order_acq_rel);
    if (newest == sleep_mark()) return nullptr;
    Request* oldest = nullptr;
    while (newest != nullptr) {
      Request* const older = newest->next_submitted;
      newest->next_submitted = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }

  /// The request that was submitted after this one.
  [[nodiscard]] static Request* next(const Request& request) noexcept {
    return request.next_submitted;
  }

  /// Consumer: announces that it is about to sleep; false, and no announcement, when there is work.
  [[nodiscard]] bool try_sleep() noexcept {
    Request* expected = nullptr;
    return top_.compare_exchange_strong(expected, sleep_mark(), std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }

  /// Consumer: takes the announcement back.
  void awake() noexcept {
    Request* expected = sleep_mark();
    top_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel,
                                 std::memory_order_relaxed);
  }

 private:
  // An address that no request can have.
  [[nodiscard]] Request* sleep_mark() const noexcept {
    return reinterpret_cast<Request*>(const_cast<SubmissionQueue*>(this));
  }

  alignas(64) std::atomic<Request*> top_{nullptr};
};

}  // namespace fcap::redis
