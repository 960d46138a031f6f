#pragma once

#include <stop_token>
#include <thread>

namespace fcap::updater {

/// Turns SIGTERM and SIGINT into a stop request: the first asks to end in order, the second ends
/// the process at once (exit code 1). To be made before any other thread, so that all of them leave
/// the signals to this one.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }

 private:
  void watch(int signals, int end);

  std::stop_source stop_;
  int end_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace fcap::updater
