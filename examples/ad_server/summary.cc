#include "summary.h"

#include <sstream>

namespace ad_server {
namespace {

std::string to_json(const std::vector<std::int64_t>& numbers) {
  std::string json = "[";
  for (const std::int64_t number : numbers) {
    if (json.size() > 1) json += ",";
    json += std::to_string(number);
  }
  return json + "]";
}

}  // namespace

std::string to_json(const Summary& summary, const LiveCounters& counters,
                    const ImpressionProducer& producer) {
  std::ostringstream json;
  json << "{\"seconds\":" << summary.seconds << ",\"user_prefix\":\"" << summary.user_prefix
       << "\",\"topic\":\"" << summary.topic
       << "\",\"begin_offsets\":" << to_json(summary.begin_offsets)
       << ",\"end_offsets\":" << to_json(summary.end_offsets)
       << ",\"drained\":" << (summary.drained ? "true" : "false")
       << ",\"checks\":" << counters.requests.load()
       << ",\"check_p50_us\":" << counters.check_us.percentile_us(0.50)
       << ",\"check_p99_us\":" << counters.check_us.percentile_us(0.99)
       << ",\"check_p999_us\":" << counters.check_us.percentile_us(0.999)
       << ",\"allowed\":" << counters.candidates_allowed.load()
       << ",\"capped\":" << counters.candidates_capped.load()
       << ",\"shown\":" << counters.shown.load()
       << ",\"shown_fail_open\":" << counters.shown_fail_open.load()
       << ",\"published\":" << producer.acknowledged()
       << ",\"publish_failed\":" << producer.failed() + counters.not_published.load()
       << ",\"propagation_probes\":" << counters.propagation_us.count()
       << ",\"propagation_unseen\":" << counters.probes_unseen.load() << ",\"propagation_p50_ms\":"
       << static_cast<double>(counters.propagation_us.percentile_us(0.50)) / 1000.0
       << ",\"propagation_p99_ms\":"
       << static_cast<double>(counters.propagation_us.percentile_us(0.99)) / 1000.0 << "}";
  return json.str();
}

}  // namespace ad_server
