#pragma once

#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace fcap::updater {

/// The metrics that Prometheus' own client libraries give of a process (process_cpu_seconds_total
/// and so on), from /proc/self. What cannot be read is left out.
[[nodiscard]] std::vector<prometheus::MetricFamily> process_metrics();

/// Their rows of the reference page.
[[nodiscard]] std::string process_metrics_reference();

}  // namespace fcap::updater
