#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fcap/log.h>

#include "kafka/consumer.h"
#include "updater/metrics/metrics.h"
#include "updater/metrics/updater_health.h"
#include "updater/pipeline/batch_writer.h"
#include "updater/pipeline/dead_letter_box.h"
#include "updater/pipeline/event_clocks.h"
#include "updater/pipeline/partition_set.h"
#include "updater/pipeline/rejection_watch.h"
#include "updater/pipeline/topic_reading.h"
#include "updater/watch/stall_book.h"
#include "updater/watch/topic_watch.h"

namespace fcap::updater {

/// What the report asks; everything must outlive it.
struct HealthReportParts {
  Health* health = nullptr;
  kafka::Consumer* consumer = nullptr;
  const TopicWatch* watch = nullptr;
  const PartitionSet* partitions = nullptr;
  const TopicReading* reading = nullptr;
  const BatchWriter* writer = nullptr;
  const DeadLetterBox* letters = nullptr;
  RejectionWatch* rejections = nullptr;
  const EventClocks* clocks = nullptr;
};

/// What the main loop says of itself in /readyz, and in the log when nothing moves on although
/// there are messages: then it names what is waited for.
///
/// Thread safety: one thread.
class HealthReport {
 public:
  using Clock = std::chrono::steady_clock;

  HealthReport(const HealthReportParts& parts, std::string topic, Metrics& metrics, LogCallback log)
      : parts_(parts), topic_(std::move(topic)), metrics_(&metrics), log_(std::move(log)) {}

  /// The loop is alive; says what its parts have trouble with. `joined`: the group has given an
  /// assignment, if an empty one.
  void beat(Clock::time_point now, bool joined);
  /// Says which partitions Kafka does not give, and what makes no progress. Less often, because it
  /// looks at each partition.
  void look(Clock::time_point now, bool joined);

 private:
  void report_partitions(Clock::time_point now);
  void report_stalls(Clock::time_point now, bool joined);
  [[nodiscard]] StallBook::StallCause cause_of(const StallBook::Stall& stall,
                                               Clock::time_point now) const;
  [[nodiscard]] StallBook::StallCause why_standing(std::int32_t partition,
                                                   Clock::time_point now) const;
  [[nodiscard]] std::string why_unassigned(Clock::time_point now) const;
  [[nodiscard]] std::string last_words(Clock::time_point now) const;

  HealthReportParts parts_;
  std::string topic_;
  Metrics* metrics_;
  LogCallback log_;
  StallBook stalls_;
  std::vector<PartitionOffset> offsets_;  // scratch
};

}  // namespace fcap::updater
