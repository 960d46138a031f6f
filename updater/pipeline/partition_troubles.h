#pragma once

#include <cstdint>
#include <string>

#include <fcap/log.h>

#include "base/backoff.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/mark_options.h"
#include "updater/pipeline/partition.h"

namespace fcap::updater {

/// Why partitions cannot be read yet: marks that cannot be read or written, and Kafka that does not
/// answer. Says so in the log, once where many partitions fail together.
///
/// Thread safety: one thread.
class PartitionTroubles {
 public:
  using Clock = Partition::Clock;

  /// `partitions`: whose troubles these are; they must outlive this.
  PartitionTroubles(const MarkOptions& options, const Partitions& partitions, Metrics& metrics,
                    LogCallback log);

  /// It is tried again at PartitionCheck::again_at.
  void failed(Partition& p, Clock::time_point now, const std::string& why);
  /// `others_fail`: something else does, so that it is too early to say that all is well.
  void recovered(Partition& p, bool others_fail);

  /// The partition's check needs an answer that Kafka has not given. After the deadline the other
  /// partitions are read without it.
  void await_kafka(Partition& p, Clock::time_point now);
  /// The others are read without it from now on.
  void leave_behind(Partition& p);
  /// The partition's check does not wait for Kafka, or no longer does.
  static void heard_kafka(Partition& p);

  /// Some partitions are no longer assigned. `others_fail`: as in recovered().
  void revoked(bool others_fail);

  [[nodiscard]] bool failing() const noexcept;
  /// The last failure while failing(), with the server's words.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void report(LogLevel level, const std::string& text) const;

  std::chrono::milliseconds deadline_;
  base::Backoff backoff_;
  const Partitions* partitions_;
  Metrics* metrics_;
  LogCallback log_;
  std::string text_;
  std::uint32_t failures_logged_ = 0;  // the longest row of failures that the log knows of
};

}  // namespace fcap::updater
