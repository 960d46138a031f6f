#pragma once

#include <string>

#include <fcap/checker_options.h>
#include <fcap/redis_options.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "kafka/conf.h"
#include "updater/settings/settings.h"

namespace fcap::updater {

/// What libfcap and the wrapper of librdkafka are given of the configuration.
[[nodiscard]] RedisOptions redis_options(const Settings& settings, LogCallback log);
[[nodiscard]] kafka::ConnectionOptions kafka_connection(const KafkaSettings& kafka);
[[nodiscard]] RuleSourceOptions rule_source_options(const Settings& settings);
[[nodiscard]] RuleSet::Options rule_set_options(const Settings& settings);

/// The group of a replay that is given none.
[[nodiscard]] std::string replay_group(const KafkaSettings& kafka);

/// Whether any source of rules is configured.
[[nodiscard]] bool has_rule_source(const Settings& settings) noexcept;

/// The connection string with postgres.password in it where that is set, quoted as libpq wants it.
[[nodiscard]] std::string conninfo_with_password(const PostgresSettings& postgres);

}  // namespace fcap::updater
