#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace ad_server {

/// Publishes impressions later than they are shown, as when a browser's beacon takes its time.
class Beacons {
 public:
  using Clock = std::chrono::steady_clock;

  ~Beacons() { finish(); }

  /// Calls `send` after this time, on a thread of its own.
  void send_after(Clock::duration delay, std::function<void()> send) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(Clock::now() + delay, std::move(send));
    changed_.notify_all();
  }

  /// Waits until all have been sent.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty(); });
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
      const auto next = waiting_.begin();
      const auto due = next->first;  // a copy: others are added while this waits
      if (changed_.wait_until(lock, stop, due, [&] { return waiting_.begin()->first < due; })) {
        continue;  // another one is due before it
      }
      lock.unlock();
      next->second();
      lock.lock();
      waiting_.erase(next);
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::multimap<Clock::time_point, std::function<void()>> waiting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

}  // namespace ad_server
