#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fcap/prometheus.h>

#include "checker/counters.h"
#include "checker/scrape.h"

namespace fcap {
namespace {

constexpr std::string_view kPrefix = "fcap_checker_";

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

// A row of the table in counters.h. Where it counts by reason, `label` is the label's name.
struct CountedMetric {  // NOLINT(clang-analyzer-optin.performance.Padding): in the table's order
  MetricKind kind;
  std::string_view name;
  std::string_view label;
  std::string_view help;
  std::uint64_t (*value)(const CheckerStats&) noexcept;
  const ReasonCounts& (*by_reason)(const CheckerStats&) noexcept = nullptr;
  Reason first = Reason::kPassed;  // by_reason: that and those after it
};

#define FCAP_VALUE(field) [](const CheckerStats& stats) noexcept { return stats.field; }
#define FCAP_COUNTER(name, field, metric, label, help) \
  CountedMetric{MetricKind::kCounter, metric, label, help, FCAP_VALUE(field)},
#define FCAP_BY_REASON(name, field, first, metric, label, help)                              \
  CountedMetric{                                                                             \
      MetricKind::kCounter,                                                                  \
      metric,                                                                                \
      label,                                                                                 \
      help,                                                                                  \
      nullptr,                                                                               \
      [](const CheckerStats& stats) noexcept -> const ReasonCounts& { return stats.field; }, \
      first},
#define FCAP_FIGURE(kind, field, metric, label, help) \
  CountedMetric{MetricKind::kind, metric, label, help, FCAP_VALUE(field)},
constexpr CountedMetric kCountedMetrics[] = {
    FCAP_CHECKER_STATS(FCAP_COUNTER, FCAP_BY_REASON, FCAP_FIGURE)};
#undef FCAP_FIGURE
#undef FCAP_BY_REASON
#undef FCAP_COUNTER
#undef FCAP_VALUE

constexpr auto kCount = MetricKind::kCounter;
constexpr auto kLevel = MetricKind::kGauge;

// A value that is worked out; nullopt: unknown, and so without a sample.
struct WorkedOutMetric {
  std::string_view name;
  std::string_view help;
  MetricKind kind;
  std::optional<double> (*value)(const Scrape&);
};

constexpr double kNsPerSecond = 1e9;

std::optional<double> seconds(std::chrono::milliseconds age) {
  if (age.count() < 0) return std::nullopt;
  return std::chrono::duration<double>(age).count();
}

constexpr std::array kWorkedOutMetrics = {
    WorkedOutMetric{"ready", "1 if rules are loaded and the store answers.", kLevel,
                    [](const Scrape& s) { return std::optional(s.health.ready ? 1.0 : 0.0); }},
    WorkedOutMetric{"rule_set_age_seconds",
                    "Since the rule set in use was last known to be the current one.", kLevel,
                    [](const Scrape& s) { return seconds(s.stats.rules.age); }},
    WorkedOutMetric{"callback_seconds_total", "Time spent in callbacks.", kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.stats.async.callback_ns_total) /
                                           kNsPerSecond);
                    }},
    WorkedOutMetric{"callback_seconds_max", "The slowest callback so far.", kLevel,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.stats.async.callback_ns_max) /
                                           kNsPerSecond);
                    }},
    WorkedOutMetric{
        "store_connected", "1 if every connection to the store is established.", kLevel,
        [](const Scrape& s) { return std::optional(s.health.store.connected ? 1.0 : 0.0); }},
    WorkedOutMetric{
        "store_breaker_open", "1 if the breaker is open, so that checks fail at once.", kLevel,
        [](const Scrape& s) { return std::optional(s.health.store.breaker_open ? 1.0 : 0.0); }},
    WorkedOutMetric{
        "store_reads_replica", "1 while checks are read from a replica.", kLevel,
        [](const Scrape& s) { return std::optional(s.health.store.reads_replica ? 1.0 : 0.0); }},
    WorkedOutMetric{"store_breaker_openings_total", "Times that the breaker opened.", kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.health.store.breaker_openings));
                    }},
    WorkedOutMetric{"store_reconnects_total", "Connections that were lost after they were ready.",
                    kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.health.store.reconnects));
                    }},
    WorkedOutMetric{"store_server_errors_total", "Replies in which the server reported an error.",
                    kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.health.store.server_errors));
                    }},
    WorkedOutMetric{"store_timeouts_total", "Operations without an answer by their deadline.",
                    kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.health.store.timeouts));
                    }},
    WorkedOutMetric{"store_failures_total", "Operations that were lost with their connection.",
                    kCount,
                    [](const Scrape& s) {
                      return std::optional(static_cast<double>(s.health.store.failures));
                    }},
    WorkedOutMetric{"store_clock_difference_seconds",
                    "The server's clock minus this machine's, give or take the round trip.", kLevel,
                    [](const Scrape& s) -> std::optional<double> {
                      const auto difference = s.health.store.clock_difference;
                      if (!difference) return std::nullopt;
                      return std::chrono::duration<double>(*difference).count();
                    }},
    WorkedOutMetric{"config_differs",
                    "1 if this process is configured differently from the writer of the records, "
                    "or nothing was ever written; no sample while that is unknown.",
                    kLevel,
                    [](const Scrape& s) -> std::optional<double> {
                      const ConfigState state = s.health.store.config_state;
                      if (state == ConfigState::kUnknown) return std::nullopt;
                      return state == ConfigState::kAgrees ? 0.0 : 1.0;
                    }},
};

constexpr std::string_view kShadowName = "shadow_capped_by_rule_total";
constexpr std::string_view kShadowHelp =
    "Verdicts that a shadow rule would have capped, by rule; at most about 1,000 rules.";

struct HistogramMetric {
  std::string_view name;
  std::string_view help;
  LatencyHistogram CheckerStats::Latencies::*value;
};

constexpr std::array kHistograms = {
    HistogramMetric{"check_seconds", "From the call to the answer, of one check in 16.",
                    &CheckerStats::Latencies::check},
    HistogramMetric{"store_seconds",
                    "From the call to the store's answer, of one check in 16 that reads.",
                    &CheckerStats::Latencies::store},
};

constexpr std::string_view kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// Writes the text format. Label values are escaped as it demands.
class MetricsWriter {
 public:
  explicit MetricsWriter(const PrometheusLabels& labels) {
    for (const auto& [name, value] : labels) add_label(common_, name, value);
  }

  void head(std::string_view name, std::string_view help, MetricKind kind) {
    if (name == last_) return;
    last_ = name;
    text_.append("# HELP ").append(kPrefix).append(name).append(" ").append(help);
    text_.append("\n# TYPE ").append(kPrefix).append(name).append(" ").append(kind_name(kind));
    text_.append("\n");
  }

  template <typename Number>
  void sample(std::string_view name, std::string_view suffix, std::string_view label,
              Number value) {
    text_.append(kPrefix).append(name).append(suffix);
    if (!common_.empty() || !label.empty()) {
      text_.append("{").append(common_);
      if (!common_.empty() && !label.empty()) text_.append(",");
      text_.append(label).append("}");
    }
    text_.append(" ").append(number(value)).append("\n");
  }

  template <typename Number>
  static std::string number(Number value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string(digits.data(), end);
  }

  static void add_label(std::string& labels, std::string_view name, std::string_view value) {
    if (!labels.empty()) labels += ',';
    labels.append(name).append("=\"");
    for (const char c : value) {
      if (c == '\n') {
        labels += "\\n";
      } else {
        if (c == '"' || c == '\\') labels += '\\';
        labels += c;
      }
    }
    labels += '"';
  }

  std::string take() { return std::move(text_); }

 private:
  std::string common_;
  std::string text_;
  std::string_view last_;
};

void write_counted(MetricsWriter& writer, const CountedMetric& metric, const CheckerStats& stats) {
  if (metric.name.empty()) return;
  writer.head(metric.name, metric.help, metric.kind);
  if (metric.by_reason == nullptr) {
    return writer.sample(metric.name, "", metric.label, metric.value(stats));
  }
  for (auto i = static_cast<std::size_t>(metric.first); i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    std::string label;
    MetricsWriter::add_label(label, metric.label, to_string(reason));
    writer.sample(metric.name, "", label, metric.by_reason(stats)[reason]);
  }
}

void write_histogram(MetricsWriter& writer, const HistogramMetric& metric,
                     const LatencyHistogram& histogram) {
  writer.head(metric.name, metric.help, MetricKind::kHistogram);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i + 1 < histogram.counts.size(); ++i) {
    below += histogram.counts[i];
    const double bound = std::chrono::duration<double>(LatencyHistogram::upper_bound(i)).count();
    writer.sample(metric.name, "_bucket", "le=\"" + MetricsWriter::number(bound) + "\"", below);
  }
  below += histogram.counts.back();
  writer.sample(metric.name, "_bucket", "le=\"+Inf\"", below);
  writer.sample(metric.name, "_sum", "", std::chrono::duration<double>(histogram.sum).count());
  writer.sample(metric.name, "_count", "", below);
}

}  // namespace

std::string prometheus_text(const Checker& checker, const PrometheusLabels& labels) {
  const Scrape scrape(checker);
  MetricsWriter writer(labels);
  for (const CountedMetric& metric : kCountedMetrics) write_counted(writer, metric, scrape.stats);
  for (const WorkedOutMetric& metric : kWorkedOutMetrics) {
    const auto value = metric.value(scrape);
    if (!value) continue;
    writer.head(metric.name, metric.help, metric.kind);
    writer.sample(metric.name, "", "", *value);
  }
  for (const ShadowCount& shadow : scrape.shadows) {
    std::string label;
    MetricsWriter::add_label(label, "rule", shadow.rule_id);
    writer.head(kShadowName, kShadowHelp, MetricKind::kCounter);
    writer.sample(kShadowName, "", label, shadow.count);
  }
  for (const HistogramMetric& metric : kHistograms) {
    write_histogram(writer, metric, scrape.stats.latency.*metric.value);
  }
  return writer.take();
}

std::string prometheus_reference() {
  std::string rows;
  std::string_view last;
  const auto row = [&](std::string_view name, MetricKind kind, std::string_view help) {
    if (name.empty() || name == last) return;
    last = name;
    rows.append("| `").append(kPrefix).append(name).append("` | ").append(kind_name(kind));
    rows.append(" | ").append(help).append(" |\n");
  };
  for (const CountedMetric& metric : kCountedMetrics) row(metric.name, metric.kind, metric.help);
  for (const WorkedOutMetric& metric : kWorkedOutMetrics)
    row(metric.name, metric.kind, metric.help);
  row(kShadowName, MetricKind::kCounter, kShadowHelp);
  for (const HistogramMetric& metric : kHistograms) {
    row(metric.name, MetricKind::kHistogram, metric.help);
  }
  return rows;
}

}  // namespace fcap
