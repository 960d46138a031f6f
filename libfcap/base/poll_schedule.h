#pragma once

#include <chrono>

namespace fcap::base {

/// When to look again. Every delay takes a number from [0, 1) that spreads processes which started
/// together.
class PollSchedule {
 public:
  explicit PollSchedule(std::chrono::milliseconds interval);

  /// The interval, give or take a tenth.
  [[nodiscard]] std::chrono::milliseconds after_answer(double random);

  /// Doubles from a second to the interval, of which half is random.
  [[nodiscard]] std::chrono::milliseconds after_failure(double random);

 private:
  std::chrono::milliseconds interval_;
  std::chrono::milliseconds backoff_;
};

}  // namespace fcap::base
