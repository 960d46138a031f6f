#include "cli/updater_config.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/time_text.h"
#include "updater/options/libraries.h"
#include "updater/settings/load_settings.h"
#include "updater/settings/redis_target.h"

namespace fcap::cli {
namespace {

using Given = std::function<bool(const char*)>;

// As --redis takes it, without the account.
std::string text_of(const RedisOptions& redis) {
  if (redis.topology == RedisTopology::kSingle) return redis.addresses.front();
  const std::string hosts = fmt::format("{}", fmt::join(redis.addresses, ","));
  if (redis.topology == RedisTopology::kCluster) return "redis-cluster://" + hosts;
  std::string master;
  for (const char c : redis.sentinel_master) {
    const bool has_meaning = std::string_view("%/@?#").find(c) != std::string_view::npos;
    master +=
        has_meaning ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return fmt::format("redis-sentinel://{}/{}", hosts, master);
}

// Another server than the file's has another user and password.
void take_redis(const updater::RedisSettings& redis, const Given& given, AccessSettings& access) {
  if (given("--redis")) return;
  const auto target = updater::redis_target(redis);
  if (!target.ok()) return;  // loading the file has reported it
  access.redis = text_of(target.value());
  if (!access.redis_tls.enabled) access.redis_tls = target.value().tls;
  if (!given("--redis-user")) access.redis_user = target.value().user;
  if (!given("--redis-password") && !given("--redis-password-file")) {
    access.redis_password = target.value().password;
  }
  if (!given("--redis-sentinel-user")) access.redis_sentinel_user = redis.sentinel_user;
  if (!given("--redis-sentinel-password") && !given("--redis-sentinel-password-file")) {
    access.redis_sentinel_password = redis.sentinel_password;
  }
  if (!given("--redis-database")) access.redis_database = target.value().database;
}

void take_kafka(const updater::KafkaSettings& kafka, const Given& given, TopicSettings& taken) {
  if (!given("--topic")) taken.topic = kafka.topic;
  if (given("--brokers") || given("--kafka")) return;
  if (!taken.brokers.empty()) taken.brokers = fmt::format("{}", fmt::join(kafka.brokers, ","));
  taken.of_updater = kafka.properties;
  if (!kafka.sasl_password.empty()) taken.of_updater["sasl.password"] = kafka.sasl_password;
}

}  // namespace

Status take_updater_config(const std::string& path, const Given& given, CliSettings& settings) {
  updater::SettingSources sources;
  sources.file_path = path;
  const auto loaded = updater::load_settings(sources);
  if (!loaded.ok()) {
    return Status::error(StatusCode::kInvalidArgument, "--config: " + loaded.status().text());
  }
  const updater::Settings& file = loaded.value().settings;
  AccessSettings& access = settings.access;
  take_redis(file.redis, given, access);
  if (!given("--key-prefix")) access.key_prefix = file.ledger.key_prefix;
  if (!given("--retention")) access.retention = base::format_length(file.ledger.retention);
  if (!given("--null-user-id")) access.null_user_ids = file.ledger.null_user_ids;
  if (!given("--postgres")) access.postgres = updater::conninfo_with_password(file.postgres);
  if (!given("--snapshot")) access.snapshot_file = file.rules.snapshot_file;
  // simulate reads a topic only where its brokers are named.
  for (TopicSettings* kafka :
       {&settings.audit.kafka, &settings.erase.kafka, &settings.simulate.kafka}) {
    take_kafka(file.kafka, given, *kafka);
  }
  if (!given("--allowed-future")) {
    // A length is never written as 0.
    const auto allowed = std::max(file.ledger.allowed_future, std::chrono::milliseconds{1});
    settings.audit.allowed_future = base::format_length(allowed);
  }
  settings.audit.signatures = file.signatures;
  settings.audit.message_bytes_max = static_cast<std::size_t>(file.pipeline.message_bytes_max);
  return {};
}

}  // namespace fcap::cli
