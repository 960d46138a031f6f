#include "updater/watch/log_settings.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/time_text.h"

namespace fcap::updater {
namespace {

std::optional<std::int64_t> number_setting(const std::map<std::string, std::string>& settings,
                                           const std::string& name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> log_retention_findings(const std::string& topic,
                                                const std::map<std::string, std::string>& settings,
                                                std::chrono::milliseconds retention) {
  std::vector<std::string> findings;
  const auto policy = settings.find("cleanup.policy");
  if (policy != settings.end() && policy->second != "delete") {
    findings.push_back(fmt::format(
        "topic {}: cleanup.policy is {}: set it to delete, because compaction removes events that "
        "a Redis that has lost data needs again",
        topic, policy->second));
  }
  const auto ms = number_setting(settings, "retention.ms");
  if (ms && *ms >= 0 && *ms < retention.count()) {
    findings.push_back(
        fmt::format("topic {}: retention.ms is {} ({}), less than ledger.retention ({}): set it to "
                    "{} or more, because a Redis that has lost data is filled again from the topic",
                    topic, *ms, base::format_length(std::chrono::milliseconds{*ms}),
                    base::format_length(retention), retention.count()));
  }
  const auto bytes = number_setting(settings, "retention.bytes");
  if (bytes && *bytes >= 0) {
    findings.push_back(fmt::format(
        "topic {}: retention.bytes is {}: set it to -1, or Kafka deletes events that are younger "
        "than ledger.retention",
        topic, *bytes));
  }
  return findings;
}

}  // namespace fcap::updater
