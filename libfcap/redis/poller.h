#pragma once

#include <chrono>

namespace fcap::redis {

/// Is told what happened on a descriptor, on the I/O thread.
class EventHandler {
 public:
  virtual void on_event(bool readable, bool writable,
                        std::chrono::steady_clock::time_point now) = 0;

 protected:
  ~EventHandler() = default;
};

/// What connections need of their I/O thread.
class Poller {
 public:
  /// Watches a descriptor for input, and for output if `output` is set; another call changes that.
  virtual void watch(int fd, bool output, EventHandler& handler) = 0;
  /// Watches it for its end only, which is told once (as input); another call changes that.
  virtual void watch_end(int fd, EventHandler& handler) = 0;
  virtual void unwatch(int fd) = 0;
  /// Hands over the requests submitted so far.
  virtual void take_submitted(std::chrono::steady_clock::time_point now) = 0;
  /// From any thread: wakes the I/O thread.
  virtual void wake() noexcept = 0;

 protected:
  ~Poller() = default;
};

}  // namespace fcap::redis
