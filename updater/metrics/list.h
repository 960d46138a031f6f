#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "updater/metrics/metrics.h"

namespace fcap::updater {

/// What is not in Metrics, but asked for at each scrape.
enum class AtScrape : std::uint8_t {
  kBuildInfo,
  kReady,
  kKafkaConnected,
  kLag,
  kPartitionLag,
  kOldestUnacknowledged,
  kRuleSetVersion,
  kRuleCount,
  kRuleSetAge,
  kRuleReloads,
  kRuleReloadsRefused,
  kRuleReloadsFailed,
  kRulesQuarantined,
  kRedisConnected,
  kRedisConnectionChanges,
  kRedisEvictedKeys,
  kRedisMayEvict,
};

/// One metric. Names are without the prefix "fcap_updater_".
struct MetricInfo {
  std::string_view name;
  std::variant<Counter Metrics::*, Gauge Metrics::*, DurationHistogram Metrics::*,
               std::array<Counter, Metrics::kRejections> Metrics::*, AtScrape>
      source;
  std::string_view text;
};

/// All of them, in the order of the reference. The one place where names and texts stand.
[[nodiscard]] std::span<const MetricInfo> metric_list() noexcept;

}  // namespace fcap::updater
