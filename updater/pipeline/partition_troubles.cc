#include "updater/pipeline/partition_troubles.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {

PartitionTroubles::PartitionTroubles(const MarkOptions& options, const Partitions& partitions,
                                     Metrics& metrics, LogCallback log)
    : deadline_(options.deadline),
      backoff_(options.backoff_min, options.backoff_max, base::seeded_jitter(options.jitter_seed)),
      partitions_(&partitions),
      metrics_(&metrics),
      log_(std::move(log)) {}

void PartitionTroubles::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

void PartitionTroubles::failed(Partition& p, Clock::time_point now, const std::string& why) {
  const std::uint32_t failures = ++p.check().failures;
  p.check().again_at = now + backoff_.after(failures);
  metrics_->mark_failures.add();
  text_ = fmt::format("partition {}: {}", p.id(), why);
  // A single failure is not logged. If many partitions fail together, one line is enough.
  const bool worth_a_line = failures > 1 && (failures & (failures - 1)) == 0;
  if (!worth_a_line || failures <= failures_logged_) return;
  failures_logged_ = failures;
  report(LogLevel::kWarning,
         fmt::format("{}; attempt {}; nothing of it is read before its mark is confirmed", text_,
                     failures));
}

void PartitionTroubles::recovered(Partition& p, bool others_fail) {
  if (p.check().failures == 0) return;
  p.check().failures = 0;
  if (failing() || others_fail) return;
  if (failures_logged_ > 0) report(LogLevel::kInfo, "marks are confirmed again");
  failures_logged_ = 0;
  text_.clear();
}

void PartitionTroubles::await_kafka(Partition& p, Clock::time_point now) {
  if (!p.check().asking_since) p.check().asking_since = now;
  if (now - *p.check().asking_since >= deadline_) leave_behind(p);
}

void PartitionTroubles::leave_behind(Partition& p) {
  const std::string text = fmt::format(
      "partition {}: Kafka cannot say yet where its reading begins; partitions of which it can are "
      "read meanwhile",
      p.id());
  // An error that Kafka has answered with says more than this text.
  if (p.check().failures == 0) text_ = text;
  if (p.check().left_behind) return;
  // If many partitions wait together, one line is enough.
  const bool first = std::ranges::none_of(
      *partitions_, [](const auto& it) { return it.second.check().left_behind; });
  p.check().left_behind = true;
  if (first) report(LogLevel::kWarning, text);
}

void PartitionTroubles::heard_kafka(Partition& p) {
  p.check().asking_since.reset();
  p.check().left_behind = false;
}

void PartitionTroubles::revoked(bool others_fail) {
  if (!failing() && !others_fail) failures_logged_ = 0;
}

bool PartitionTroubles::failing() const noexcept {
  return std::ranges::any_of(*partitions_, [](const auto& it) {
    return it.second.check().failures > 0 || it.second.check().left_behind;
  });
}

}  // namespace fcap::updater
