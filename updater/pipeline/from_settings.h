#pragma once

#include "updater/pipeline/updater.h"
#include "updater/settings/settings.h"

namespace fcap::updater {

/// What the write path is given of the configuration.
[[nodiscard]] UpdaterOptions updater_options(const Settings& settings);
[[nodiscard]] kafka::Connection kafka_connection(const KafkaSettings& kafka);

}  // namespace fcap::updater
