#pragma once

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// Asks Kafka as the updater does: whether the topics exist and may be read and written to,
/// whether the groups may be used, and whether Kafka keeps events for long enough. Commits and
/// writes nothing.
void check_kafka_cluster(const Settings& settings, Findings& findings);

}  // namespace fcap::updater
