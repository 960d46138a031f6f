#pragma once

#include <vector>

#include <fcap/status.h>

#include "updater/settings/load_settings.h"
#include "updater/watch/changed_files.h"

namespace fcap::updater {

/// The files of the settings that only a restart reads again: librdkafka's, and the passwords for
/// Kafka and PostgreSQL.
[[nodiscard]] std::vector<ChangedFiles::File> files_read_once(const Settings& settings);

/// Whether a restart would serve: the settings can be read, every file that they name can be used,
/// and a broker accepts what it would be shown. Waits for a broker for some seconds.
[[nodiscard]] Status check_restart(const SettingSources& sources);

}  // namespace fcap::updater
