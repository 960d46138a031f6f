#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

/// Kafka's log as a PartitionSet asks about it.
class FakeLog final : public OffsetSource {
 public:
  void ask(std::span<const std::int32_t> partitions) override {
    asked += partitions.size();
    if (!partitions.empty()) ++questions;
  }
  std::optional<Result<LogBounds>> answer(std::int32_t partition) const override {
    if (unanswered) return std::nullopt;
    if (silent || without_leader.contains(partition))
      return Result<LogBounds>(Status::error(StatusCode::kUnavailable, "no broker", true));
    LogBounds bounds{std::nullopt, start, log_start, gone_before};
    const auto found = commits.find(partition);
    if (found != commits.end() && found->second >= 0) bounds.committed = found->second;
    return Result<LogBounds>(bounds);
  }
  std::map<std::int32_t, std::int64_t> commits;
  std::int64_t start = 10;
  std::int64_t log_start = 0;
  std::optional<Instant> gone_before = {};
  bool silent = false;                    // Kafka answers with an error
  std::set<std::int32_t> without_leader;  // and about these
  bool unanswered = false;                // Kafka has not answered yet
  std::size_t asked = 0;
  std::size_t questions = 0;
};

}  // namespace fcap::updater::testing
