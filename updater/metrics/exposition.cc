#include "updater/metrics/exposition.h"

#include <limits>
#include <utility>
#include <variant>

#include <fmt/core.h>
#include <prometheus/client_metric.h>
#include <prometheus/text_serializer.h>

#include <fcap/prometheus.h>
#include <fcap/version.h>

#include "events/event_decoder.h"
#include "updater/metrics/list.h"
#include "updater/metrics/process_metrics.h"

namespace fcap::updater {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

static_assert(Metrics::kRejections == events::kRejections);

constexpr std::string_view kPrefix = "fcap_updater_";

template <typename... Functions>
struct MetricOverload : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
MetricOverload(Functions...) -> MetricOverload<Functions...>;

MetricType type_of(const MetricInfo& info) {
  if (std::holds_alternative<DurationHistogram Metrics::*>(info.source)) {
    return MetricType::Histogram;
  }
  return info.name.ends_with("_total") ? MetricType::Counter : MetricType::Gauge;
}

double seconds(std::chrono::microseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

ClientMetric number(MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

ClientMetric histogram(const DurationHistogram& durations) {
  ClientMetric metric;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= DurationHistogram::kBuckets; ++i) {
    count += durations.in_bucket(i);
    const double bound = i < DurationHistogram::kBuckets ? seconds(DurationHistogram::bound(i))
                                                         : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = seconds(durations.sum());
  return metric;
}

double of_rules(AtScrape asked, const sources::RefreshState& state) {
  switch (asked) {
    case AtScrape::kRuleSetVersion:
      return static_cast<double>(state.version);
    case AtScrape::kRuleCount:
      return static_cast<double>(state.rule_count);
    case AtScrape::kRuleSetAge:
      return seconds(state.age);
    case AtScrape::kRuleReloads:
      return static_cast<double>(state.reloads);
    case AtScrape::kRuleReloadsRefused:
      return static_cast<double>(state.refused);
    case AtScrape::kRulesQuarantined:
      return static_cast<double>(state.quarantined_count);
    default:
      return static_cast<double>(state.failed);
  }
}

std::vector<ClientMetric> of_lag(AtScrape asked, const Lag& lag) {
  std::vector<ClientMetric> metrics;
  const auto add = [&](double value) {
    metrics.push_back(number(MetricType::Gauge, value));
    metrics.back().label.push_back({.name = "topic", .value = lag.topic});
  };
  if (asked == AtScrape::kLag && lag.messages) {
    add(static_cast<double>(*lag.messages));
  } else if (asked == AtScrape::kOldestUnacknowledged && lag.oldest) {
    constexpr double kMsPerSecond = 1000;
    add(static_cast<double>(to_ms(*lag.oldest)) / kMsPerSecond);
  } else if (asked == AtScrape::kPartitionLag) {
    for (const auto& [partition, behind] : lag.by_partition) {
      add(static_cast<double>(behind));
      metrics.back().label.push_back({.name = "partition", .value = std::to_string(partition)});
    }
  }
  return metrics;
}

std::vector<ClientMetric> flag(MetricType type, const std::function<bool()>& source) {
  if (!source) return {};
  return {number(type, source() ? 1 : 0)};
}

std::vector<ClientMetric> answer(AtScrape asked, MetricType type, const ScrapeSources& sources) {
  switch (asked) {
    case AtScrape::kBuildInfo: {
      ClientMetric metric = number(type, 1);
      metric.label.push_back({.name = "version", .value = FCAP_VERSION});
      return {metric};
    }
    case AtScrape::kReady:
      return flag(type, sources.ready);
    case AtScrape::kKafkaConnected:
      return flag(type, sources.kafka_connected);
    case AtScrape::kLag:
    case AtScrape::kPartitionLag:
    case AtScrape::kOldestUnacknowledged:
      return sources.lag ? of_lag(asked, sources.lag()) : std::vector<ClientMetric>{};
    case AtScrape::kRedisConnected:
      return flag(type, sources.redis_connected);
    case AtScrape::kRedisEvictedKeys:
    case AtScrape::kRedisMayEvict: {
      const auto facts = sources.redis_facts ? sources.redis_facts() : std::nullopt;
      if (!facts) return {};
      if (asked == AtScrape::kRedisMayEvict) return {number(type, facts->may_evict() ? 1 : 0)};
      if (!facts->evicted_keys) return {};
      return {number(type, static_cast<double>(*facts->evicted_keys))};
    }
    case AtScrape::kRedisConnectionChanges:
      if (!sources.redis_connection_changes) return {};
      return {number(type, static_cast<double>(sources.redis_connection_changes()))};
    default: {
      if (!sources.rules) return {};
      const auto state = sources.rules();
      if (asked == AtScrape::kRuleSetAge && state.age.count() < 0) return {};
      return {number(type, of_rules(asked, state))};
    }
  }
}

std::vector<ClientMetric> by_reason(const std::array<Counter, Metrics::kRejections>& rejected) {
  std::vector<ClientMetric> metrics;
  for (std::size_t i = 0; i < rejected.size(); ++i) {
    metrics.push_back(number(MetricType::Counter, static_cast<double>(rejected[i].value())));
    metrics.back().label.push_back(
        {.name = "reason",
         .value = std::string(events::to_string(static_cast<events::Rejection>(i)))});
  }
  return metrics;
}

std::vector<ClientMetric> read(const MetricInfo& info, const Metrics& metrics,
                               const ScrapeSources& sources) {
  const MetricType type = type_of(info);
  using Values = std::vector<ClientMetric>;
  return std::visit(MetricOverload{
                        [&](Counter Metrics::*counter) -> Values {
                          return {number(type, static_cast<double>((metrics.*counter).value()))};
                        },
                        [&](Gauge Metrics::*gauge) -> Values {
                          const std::int64_t level = (metrics.*gauge).value();
                          if (level == Gauge::kUnknown) return {};
                          return {number(type, static_cast<double>(level))};
                        },
                        [&](DurationHistogram Metrics::*durations) -> Values {
                          return {histogram(metrics.*durations)};
                        },
                        [&](std::array<Counter, Metrics::kRejections> Metrics::*rejected) {
                          return by_reason(metrics.*rejected);
                        },
                        [&](AtScrape asked) { return answer(asked, type, sources); },
                    },
                    info.source);
}

std::string_view type_word(const MetricInfo& info) {
  switch (type_of(info)) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Histogram:
      return "histogram";
    default:
      return "gauge";
  }
}

std::string_view unit_word(std::string_view name) {
  if (name.find("_bytes") != std::string_view::npos) return "bytes";
  if (name.ends_with("_seconds")) return "seconds";
  return "";
}

}  // namespace

std::vector<MetricFamily> MetricsExposition::Collect() const {
  std::vector<MetricFamily> families;
  for (const MetricInfo& info : metric_list()) {
    MetricFamily family;
    family.metric = read(info, *metrics_, sources_);
    if (family.metric.empty()) continue;
    family.name = fmt::format("{}{}", kPrefix, info.name);
    family.help = info.text;
    family.type = type_of(info);
    families.push_back(std::move(family));
  }
  for (auto& family : process_metrics()) families.push_back(std::move(family));
  return families;
}

std::string MetricsExposition::text() const {
  return prometheus::TextSerializer().Serialize(Collect());
}

std::string metrics_reference() {
  std::string out = R"(# Metrics of fcap-updater

<!-- Generated by `fcap-updater reference metrics`; edit updater/metrics/list.cc instead. -->

Served at `/metrics` in Prometheus' text format, on `http.address` and `http.port` (by default
`http://127.0.0.1:9464/metrics`). Counters begin at 0 when the process starts. Histograms have
buckets that double from 1 ms to 65.536 s.

`/healthz` answers 200 while the main loop runs, 503 when it has stalled for `http.stalled_after`.
`/readyz` answers 200 when the updater is healthy, its partitions are assigned, Redis acknowledges,
offsets move on and, where a source of rules is configured, rules are loaded; otherwise 503, with a
line for each reason. Either way further lines name rules that are quarantined, and a version of the
rules that is refused or cannot be read.

A message read is counted once more when it has been settled: read = written + erasures + too old +
null user + rejected + those in flight. After a rewind or a change of the assignment messages are
read, and counted, again.

| name | type | unit | meaning |
|---|---|---|---|
)";
  for (const MetricInfo& info : metric_list()) {
    out += fmt::format("| `{}{}` | {} | {} | {} |\n", kPrefix, info.name, type_word(info),
                       unit_word(info.name), info.text);
  }
  out += process_metrics_reference();
  out += R"(
# Metrics of libfcap

What `prometheus_text()` of `<fcap/prometheus.h>` renders for the endpoint of a host: the statistics
of one Checker. The example ad server serves them with `--metrics-port`.

| name | type | meaning |
|---|---|---|
)";
  out += prometheus_reference();
  return out;
}

}  // namespace fcap::updater
