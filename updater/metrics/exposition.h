#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "sources/rule_refresher.h"
#include "updater/metrics/metrics.h"
#include "updater/watch/lag_book.h"
#include "updater/watch/redis_facts.h"

namespace fcap::updater {

/// What is asked at each scrape besides the counters. Any may be empty: its metrics are left out.
struct ScrapeSources {
  std::function<sources::RefreshState()> rules = {};
  std::function<bool()> ready = {};
  std::function<bool()> kafka_connected = {};
  std::function<Lag()> lag = {};
  std::function<std::optional<RedisFacts>()> redis_facts = {};
  std::function<bool()> redis_connected = {};
  std::function<std::uint64_t()> redis_connection_changes = {};
};

/// Everything the daemon counts, as Prometheus metrics named fcap_updater_….
///
/// Thread-safe. Everything given must outlive it.
class MetricsExposition final : public prometheus::Collectable {
 public:
  MetricsExposition(const Metrics& metrics, ScrapeSources sources)
      : metrics_(&metrics), sources_(std::move(sources)) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
  /// In the text format.
  [[nodiscard]] std::string text() const;

 private:
  const Metrics* metrics_;
  const ScrapeSources sources_;
};

/// docs/metrics.md.
[[nodiscard]] std::string metrics_reference();

}  // namespace fcap::updater
