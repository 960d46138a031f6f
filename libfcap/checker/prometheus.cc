#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fcap/prometheus.h>

#include "checker/scrape.h"

namespace fcap {
namespace {

constexpr std::string_view kPrefix = "fcap_checker_";

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

// A counter of CheckerStats. `label` is `reason="timeout"` and so on; metrics of one name that
// differ in it follow each other.
struct CountedMetric {
  std::string_view name;
  std::string_view help;
  MetricKind kind;
  std::uint64_t (*value)(const CheckerStats&) noexcept;
  std::string_view label = {};
};

constexpr std::string_view kUnjudgedHelp =
    "Checks that were answered without the history, by reason.";
constexpr std::string_view kVerdictsHelp = "Verdicts, by whether the candidate may be shown.";
constexpr std::string_view kReadsHelp = "Reads that the store answered, by what they found.";
constexpr std::string_view kReservesHelp =
    "Calls of reserve(), record(), pick_and_reserve() and release(), by how they ended. More that "
    "are repeated than there are retries mean that event ids are not unique.";
constexpr std::string_view kSharesHelp =
    "Shown impressions that were to be shared with other servers, by what became of it.";
constexpr auto kCount = MetricKind::kCounter;
constexpr auto kLevel = MetricKind::kGauge;

#define FCAP_FIELD(field) [](const CheckerStats& stats) noexcept { return stats.field; }
#define FCAP_RESERVED(reason, label)                                                    \
  CountedMetric {                                                                       \
    "reserves_total", kReservesHelp, kCount,                                            \
        [](const CheckerStats& stats) noexcept {                                        \
          return stats.reserves.ended[static_cast<std::size_t>(ReserveReason::reason)]; \
        },                                                                              \
        label                                                                           \
  }
constexpr std::array kCountedMetrics = {
    CountedMetric{"checks_total", "Users that were asked about.", kCount, FCAP_FIELD(checks)},
    CountedMetric{"candidates_total", "Candidates that were judged.", kCount,
                  FCAP_FIELD(candidates)},
    CountedMetric{"verdicts_total", kVerdictsHelp, kCount, FCAP_FIELD(allowed),
                  "verdict=\"allowed\""},
    CountedMetric{"verdicts_total", kVerdictsHelp, kCount, FCAP_FIELD(capped),
                  "verdict=\"capped\""},
    CountedMetric{"shadow_capped_total", "Verdicts that a shadow rule would have capped.", kCount,
                  FCAP_FIELD(shadow_capped)},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.no_user),
                  "reason=\"no_user\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.no_rules),
                  "reason=\"no_rules\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.timeouts),
                  "reason=\"timeout\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.unavailable),
                  "reason=\"unavailable\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.breaker_open),
                  "reason=\"breaker_open\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.overloaded),
                  "reason=\"overloaded\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.undecodable),
                  "reason=\"undecodable\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.forked),
                  "reason=\"forked\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.invalid),
                  "reason=\"invalid\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.shutdown),
                  "reason=\"shutdown\""},
    CountedMetric{"unjudged_total", kUnjudgedHelp, kCount, FCAP_FIELD(reasons.reentrant),
                  "reason=\"reentrant\""},
    CountedMetric{"reads_total", kReadsHelp, kCount, FCAP_FIELD(reads.found), "result=\"found\""},
    CountedMetric{"reads_total", kReadsHelp, kCount, FCAP_FIELD(reads.missing),
                  "result=\"missing\""},
    CountedMetric{"reads_total", kReadsHelp, kCount, FCAP_FIELD(reads.server_errors),
                  "result=\"server_error\""},
    CountedMetric{"stale_reads_total",
                  "Reads that a replica answered; they may lack the latest events.", kCount,
                  FCAP_FIELD(reads.stale)},
    CountedMetric{
        "unread_checks_total",
        "Checks that needed no read, because no rule counts anything for their candidates.", kCount,
        FCAP_FIELD(reads.unneeded)},
    CountedMetric{"canceled_total", "Asynchronous checks that were canceled.", kCount,
                  FCAP_FIELD(async.canceled)},
    CountedMetric{"callbacks_total", "Callbacks that have run.", kCount,
                  FCAP_FIELD(async.callbacks)},
    CountedMetric{"answers_waiting", "Known answers whose callbacks wait for a thread.", kLevel,
                  FCAP_FIELD(async.answers_waiting)},
    CountedMetric{"pending", "Checks that have begun and are not answered.", kLevel,
                  FCAP_FIELD(pending)},
    CountedMetric{"shown_noted_total", "Impressions that note_shown() has noted.", kCount,
                  FCAP_FIELD(shown.noted)},
    CountedMetric{"shown_confirmed_total",
                  "Noted impressions that were since read from the ledger.", kCount,
                  FCAP_FIELD(shown.confirmed)},
    CountedMetric{"shown_displaced_total",
                  "Noted impressions that newer ones have displaced; raise local.shown_max.",
                  kCount, FCAP_FIELD(shown.displaced)},
    CountedMetric{"shown_taken_back_total", "Noted impressions that were taken back.", kCount,
                  FCAP_FIELD(shown.taken_back)},
    CountedMetric{"shown_kept", "Noted impressions that are remembered.", kLevel,
                  FCAP_FIELD(shown.kept)},
    FCAP_RESERVED(kDone, "outcome=\"done\""),
    FCAP_RESERVED(kRepeated, "outcome=\"repeated\""),
    FCAP_RESERVED(kCapped, "outcome=\"capped\""),
    FCAP_RESERVED(kReleased, "outcome=\"released\""),
    FCAP_RESERVED(kIncomplete, "outcome=\"incomplete\""),
    FCAP_RESERVED(kTooMany, "outcome=\"too_many\""),
    FCAP_RESERVED(kTooLong, "outcome=\"too_long\""),
    FCAP_RESERVED(kNoConfig, "outcome=\"no_config\""),
    FCAP_RESERVED(kClock, "outcome=\"clock\""),
    FCAP_RESERVED(kConflict, "outcome=\"conflict\""),
    FCAP_RESERVED(kNoUser, "outcome=\"no_user\""),
    FCAP_RESERVED(kNoRules, "outcome=\"no_rules\""),
    FCAP_RESERVED(kTimeout, "outcome=\"timeout\""),
    FCAP_RESERVED(kUnavailable, "outcome=\"unavailable\""),
    FCAP_RESERVED(kBreakerOpen, "outcome=\"breaker_open\""),
    FCAP_RESERVED(kOverloaded, "outcome=\"overloaded\""),
    FCAP_RESERVED(kUndecodable, "outcome=\"undecodable\""),
    FCAP_RESERVED(kForked, "outcome=\"forked\""),
    FCAP_RESERVED(kShutdown, "outcome=\"shutdown\""),
    FCAP_RESERVED(kReentrant, "outcome=\"reentrant\""),
    FCAP_RESERVED(kInvalid, "outcome=\"invalid\""),
    CountedMetric{"reserves_unknown_total",
                  "Hard calls of which it is not known whether they have written.", kCount,
                  FCAP_FIELD(reserves.unknown)},
    CountedMetric{"reserve_conflicts_total",
                  "Exchanges of hard calls that found a record which another writer had changed.",
                  kCount, FCAP_FIELD(reserves.conflicts)},
    CountedMetric{"shared_notes_total", kSharesHelp, kCount, FCAP_FIELD(shares.shared),
                  "outcome=\"sent\""},
    CountedMetric{"shared_notes_total", kSharesHelp, kCount, FCAP_FIELD(shares.unread),
                  "outcome=\"unread\""},
    CountedMetric{"shared_notes_total", kSharesHelp, kCount, FCAP_FIELD(shares.no_room),
                  "outcome=\"no_room\""},
    CountedMetric{"shared_notes_total", kSharesHelp, kCount, FCAP_FIELD(shares.no_config),
                  "outcome=\"no_config\""},
    CountedMetric{"shared_notes_total", kSharesHelp, kCount, FCAP_FIELD(shares.clock),
                  "outcome=\"clock\""},
    CountedMetric{"shared_notes_failed_total",
                  "Writes of shared notes that the store did not take, or did not acknowledge.",
                  kCount, FCAP_FIELD(shares.failed)},
    CountedMetric{"shared_notes_taken_back_total", "Shared notes that were taken back.", kCount,
                  FCAP_FIELD(shares.taken_back)},
    CountedMetric{"cached_checks_total", "Checks answered from cached caps, without a read.",
                  kCount, FCAP_FIELD(cache.checks)},
    CountedMetric{"cached_verdicts_total", "Verdicts given from cached caps.", kCount,
                  FCAP_FIELD(cache.verdicts)},
    CountedMetric{"certain_verdicts_total",
                  "Verdicts that capped without the history, because they are certain without it.",
                  kCount, FCAP_FIELD(certain_verdicts)},
    CountedMetric{"cached_caps", "Cached caps.", kLevel, FCAP_FIELD(cache.caps)},
    CountedMetric{"unknown_frames_total", "Frames of a newer format that were skipped in records.",
                  kCount, FCAP_FIELD(reads.unknown_frames)},
    CountedMetric{"rule_set_version", "Version of the rule set in use.", kLevel,
                  FCAP_FIELD(rules.version)},
    CountedMetric{"rules", "Rules in use.", kLevel, FCAP_FIELD(rules.count)},
    CountedMetric{"rule_reloads_total", "Rule sets that were put into use.", kCount,
                  FCAP_FIELD(rules.reloads)},
    CountedMetric{"rule_reloads_refused_total",
                  "Rule sets that were refused; the last good one stayed.", kCount,
                  FCAP_FIELD(rules.reloads_refused)},
    CountedMetric{"rules_quarantined",
                  "Rules of the version in use that are wrong and not in force.", kLevel,
                  FCAP_FIELD(rules.quarantined)},
    CountedMetric{"segment_set_version", "Version of the segments in use.", kLevel,
                  FCAP_FIELD(segments.version)},
    CountedMetric{"segment_members", "Memberships over all stored segments.", kLevel,
                  FCAP_FIELD(segments.members)},
    CountedMetric{"segment_bytes", "Memory that stored segments take.", kLevel,
                  FCAP_FIELD(segments.bytes)},
    CountedMetric{"segment_reloads_total", "Sets of segments that were put into use.", kCount,
                  FCAP_FIELD(segments.reloads)},
    CountedMetric{"segment_reloads_failed_total",
                  "Loads of segments that failed; the last good set stayed.", kCount,
                  FCAP_FIELD(segments.reloads_failed)},
};
#undef FCAP_FIELD
#undef FCAP_RESERVED

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
  for (const CountedMetric& metric : kCountedMetrics) {
    writer.head(metric.name, metric.help, metric.kind);
    writer.sample(metric.name, "", metric.label, metric.value(scrape.stats));
  }
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
    if (name == last) return;
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
