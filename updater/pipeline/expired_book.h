#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fcap/log.h>
#include <fcap/time.h>

#include "updater/marks/gaps.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/partition.h"
#include "updater/watch/log_bounds.h"

namespace fcap::updater {

/// Which events are missing for good, because Kafka no longer has the messages that held them: for
/// the log, for the metrics, and to be stated. Until Checkers are told, no mark and no commit
/// passes these messages: a process that is killed before would leave nothing that shows that they
/// are missing. But a statement that cannot be made is waited for for a minute only: meanwhile,
/// what is read would be read again by the next process.
///
/// Thread safety: one thread.
class ExpiredBook {
 public:
  using Clock = Partition::Clock;

  ExpiredBook(Metrics& metrics, LogCallback log) : metrics_(&metrics), log_(std::move(log)) {}

  void tick(Clock::time_point now) noexcept { now_ = now; }
  /// `gone`: the offsets below the log's start that were in gaps. Events before `oldest` do not
  /// count any more.
  void expired_in_gaps(const Gaps& gone, ExpiredEvents events, Instant oldest);
  /// Redis has lost events of these users, and the log may begin too late to have them all.
  void lost(std::int32_t partition, const LogBounds& bounds, const SlotSet& slots);
  /// Messages were not there where reading should have continued.
  void jumped(std::int32_t partition, const Partition::Jump& jump);
  /// A partition's gaps are filled, as far as they can be.
  void filled(std::int32_t partition);
  /// The partition is no longer assigned.
  void revoked(std::int32_t partition) { in_gaps_.erase(partition); }

  /// What was found since the last call.
  [[nodiscard]] std::vector<ExpiredEvents> take();
  /// What was taken so far is stated.
  void stated();
  /// Whether something of the partition is still to be stated, and waited for.
  [[nodiscard]] bool unstated(std::int32_t partition) const;

 private:
  struct UnstatedEvents {
    Clock::time_point since{};
    bool taken = false;  // all of it
  };

  void found(ExpiredEvents events);
  void report(LogLevel level, const std::string& text) const;

  Metrics* metrics_;
  LogCallback log_;
  Clock::time_point now_{};  // of the last tick()
  std::vector<ExpiredEvents> found_;
  std::map<std::int32_t, UnstatedEvents> waiting_;  // by partition: what is not stated yet
  std::set<std::int32_t> in_gaps_;  // partitions of whose gaps some messages have expired
};

}  // namespace fcap::updater
