#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include <fcap/checker.h>

#include "checker/parts.h"
#include "checker/pool.h"
#include "checker/read_group.h"
#include "checker/reserve_run.h"

namespace fcap::checker {

/// The forms of a hard call whose callers wait.
///
/// Thread safety: all functions from any thread.
class BlockingHardCalls {
 public:
  /// Throws std::bad_alloc.
  explicit BlockingHardCalls(SharedParts parts);

  HardResult call(const HardRequest& request, const HardOptions& options) noexcept;
  PagePicks pick(const ReserveAsk& ask) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void perform(ReserveRun& run, const ReserveAsk& ask) noexcept;
  void drive(ReserveRun& run, const ReserveAsk& ask, CountedCall& inside);
  void start(const ReserveRun& run, ReserveRun::ReserveStep step, Clock::time_point deadline,
             ReadGroup& calls);
  template <typename Start>
  [[nodiscard]] HeldGroup ask_store(Clock::time_point deadline, const Start& start);

  SharedParts parts_;
  Pool<ReadGroup>::Owner read_groups_;
};

}  // namespace fcap::checker
