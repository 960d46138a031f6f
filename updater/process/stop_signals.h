#pragma once

#include <chrono>
#include <stop_token>
#include <thread>

namespace fcap::updater {

/// Turns SIGTERM, SIGINT and SIGHUP (unless that is ignored) into a stop request: the first asks to
/// end in order, a later one ends the process at once (exit code 1). To be made before any other
/// thread, so that all of them leave the signals to this one.
class StopSignals {
 public:
  /// One request to stop often arrives twice: timeout(1) signals its child and then its process
  /// group, Ctrl-C reaches everything in the terminal and scripts pass it on. So what comes within
  /// `doubled` after the first signal is taken for the same.
  explicit StopSignals(std::chrono::milliseconds doubled = std::chrono::seconds{1});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }

 private:
  void watch(int signals, int end);

  const std::chrono::milliseconds doubled_;
  std::stop_source stop_;
  int end_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace fcap::updater
