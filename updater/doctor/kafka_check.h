#pragma once

#include <chrono>

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// What each question of the doctor may take.
inline constexpr std::chrono::seconds kKafkaAnswersWithin{5};

/// Asks Kafka as the updater does: whether the topics exist and may be read and written to,
/// whether the groups may be used, and whether Kafka keeps events for long enough. Commits and
/// writes nothing.
void check_kafka_cluster(const Settings& settings, Findings& findings);

}  // namespace fcap::updater
