#include "updater/options/libraries.h"

#include <utility>

#include <fmt/ranges.h>

#include "postgres/conninfo.h"
#include "updater/settings/redis_target.h"

namespace fcap::updater {

RedisOptions redis_options(const Settings& settings, LogCallback log) {
  const auto target = redis_target(settings.redis);
  RedisOptions options = target.ok() ? target.value() : RedisOptions{};
  options.master_only = true;
  options.connect_timeout = settings.redis.connect_timeout;
  // Compaction mends records that have grown beyond what a check would read.
  options.value_bytes_max = std::size_t{64} << 20U;
  options.io_threads = static_cast<std::size_t>(settings.redis.io_threads);
  const auto& files = settings.secret_files;
  const auto file = files.find("redis.password");
  if (file != files.end() && options.password == settings.redis.password) {
    options.password.clear();
    options.password_file = file->second;
  }
  if (const auto found = files.find("redis.sentinel_password"); found != files.end()) {
    options.sentinel_password.clear();
    options.sentinel_password_file = found->second;
  }
  options.log = std::move(log);
  // A slow Redis is not a dead one. Closing a connection loses the answers to what Redis has
  // already done, and everything behind the marks is then read again.
  options.stale_reset = std::chrono::seconds{5};
  // For the same reason, age alone never renews a connection. A writer learns of a demoted server
  // from its role and its READONLY errors, and a password or certificate that changes renews the
  // connection all the same.
  options.connection_max_age = std::chrono::milliseconds{0};
  return options;
}

kafka::ConnectionOptions kafka_connection(const KafkaSettings& kafka) {
  kafka::ConnectionOptions connection;
  connection.brokers = fmt::format("{}", fmt::join(kafka.brokers, ","));
  connection.client_id = kafka.client_id;
  connection.sasl_password = kafka.sasl_password;
  connection.properties = kafka.properties;
  return connection;
}

RuleSourceOptions rule_source_options(const Settings& settings) {
  RuleSourceOptions options;
  options.postgres = conninfo_with_password(settings.postgres);
  options.snapshot_file = settings.rules.snapshot_file;
  options.poll_interval = settings.rules.poll_interval;
  options.listen = settings.rules.listen;
  options.shrink_refused_below = settings.rules.shrink_refused_below;
  options.accept_any_shrink = settings.rules.accept_any_shrink;
  return options;
}

RuleSet::Options rule_set_options(const Settings& settings) {
  return {.retention = settings.ledger.retention};
}

std::string replay_group(const KafkaSettings& kafka) {
  return kafka.group_id + "-replay";
}

bool has_rule_source(const Settings& settings) noexcept {
  return !settings.postgres.conninfo.empty() || !settings.rules.snapshot_file.empty();
}

std::string conninfo_with_password(const PostgresSettings& postgres) {
  if (postgres.conninfo.empty() || postgres.password.empty()) return postgres.conninfo;
  return postgres::with_password(postgres.conninfo, postgres.password);
}

}  // namespace fcap::updater
