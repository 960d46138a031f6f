#pragma once

#include <string>

#include <fcap/checker_options.h>
#include <fcap/redis_options.h>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// What the parts of libfcap are given.
[[nodiscard]] RedisOptions redis_options(const Settings& settings, LogCallback log);
[[nodiscard]] RuleSourceOptions rule_source_options(const Settings& settings);

/// Whether any source of rules is configured.
[[nodiscard]] bool has_rule_source(const Settings& settings) noexcept;

/// The connection string with postgres.password in it where that is set, quoted as libpq wants it.
[[nodiscard]] std::string conninfo_with_password(const PostgresSettings& postgres);

/// The connection string for printing: secrets that it holds itself are masked.
[[nodiscard]] std::string masked_conninfo(const std::string& conninfo);

}  // namespace fcap::updater
