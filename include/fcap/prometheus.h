#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fcap/checker.h>
#include <fcap/export.h>

namespace fcap {

/// Labels that every sample gets, such as {"region", "eu"}, for processes with several Checkers.
using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;

/// All statistics of a Checker in Prometheus' text format (version 0.0.4), for the host's own
/// metrics endpoint: counters, gauges, latency histograms of one check in 16, and what each shadow
/// rule would have capped. docs/metrics.md lists the names, which all begin with fcap_checker_.
///
///     server.get("/metrics", [&] { return my_metrics() + fcap::prometheus_text(checker); });
///
/// Unknown values have no sample. May be called from any thread; takes some ten microseconds and
/// never waits for a server. Throws std::bad_alloc.
[[nodiscard]] FCAP_EXPORT std::string prometheus_text(const Checker& checker,
                                                      const PrometheusLabels& labels = {});

/// The table of docs/metrics.md: name, type and meaning of each metric, as Markdown rows.
[[nodiscard]] FCAP_EXPORT std::string prometheus_reference();

}  // namespace fcap
