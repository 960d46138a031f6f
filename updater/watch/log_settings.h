#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace fcap::updater {

/// What is wrong with how long Kafka keeps the topic of events, by the topic's own settings: one
/// line each, naming what to change. A Redis that has lost data is filled again from the topic, so
/// the topic must keep every event for as long as Redis does.
[[nodiscard]] std::vector<std::string> log_retention_findings(
    const std::string& topic, const std::map<std::string, std::string>& settings,
    std::chrono::milliseconds retention);

}  // namespace fcap::updater
