#pragma once

#include <cstdint>
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
/// the log, for the metrics, and to be stated.
///
/// Thread safety: one thread.
class ExpiredBook {
 public:
  ExpiredBook(Metrics& metrics, LogCallback log) : metrics_(&metrics), log_(std::move(log)) {}

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
  [[nodiscard]] std::vector<ExpiredEvents> take() { return std::exchange(found_, {}); }

 private:
  void report(LogLevel level, const std::string& text) const;

  Metrics* metrics_;
  LogCallback log_;
  std::vector<ExpiredEvents> found_;
  std::set<std::int32_t> in_gaps_;  // partitions of whose gaps some messages have expired
};

}  // namespace fcap::updater
