#pragma once

#include <chrono>

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// What each question of the doctor to Kafka may take.
inline constexpr std::chrono::seconds kKafkaAnswersWithin{5};

/// Asks Kafka as the updater does: whether the topics exist and may be read and written to,
/// whether the groups may be used, and whether Kafka keeps events for long enough. Commits and
/// writes nothing.
void check_kafka_cluster(const Settings& settings, Findings& findings);

/// Connects to Redis as the updater does and looks whether it is fit: version, eviction, clock, the
/// recorded configuration, and whether the account may do what it must. For that it writes a key
/// of a user that cannot exist, and deletes it again. In a cluster it looks at every master.
void check_redis_server(const Settings& settings, Findings& findings);

/// Reads rules and segments as the updater does, and looks at the schema and at the clock. Changes
/// nothing.
void check_postgres_server(const Settings& settings, Findings& findings);

}  // namespace fcap::updater
