#include "cli/record_reader.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "cli/instants.h"
#include "cli/redis_access.h"
#include "ledger/user_key.h"
#include "redis/blocking_call.h"
#include "redis/password_file.h"
#include "redis/redis_options_check.h"
#include "redis/redis_store.h"

namespace fcap::cli {
namespace {

// Checkers read it as often. A list of questions does not need a read for each.
constexpr std::chrono::seconds kMissingKnownFor{10};

// The file's content if one is named, otherwise what the environment says.
Result<std::string> choose_password(const char* option, const std::string& path,
                                    const std::string& of_environment) {
  if (path.empty()) return of_environment;
  return redis::read_password(option, path);
}

// One shard of a cluster is enough: another one that is away keeps only its own users from being
// answered.
bool reaches_something(const redis::Client& client) {
  if (!client.is_cluster()) return client.connected();
  return std::ranges::any_of(client.shards(), [](const redis::ClusterShard& shard) {
    return shard.connection_epoch != 0;
  });
}

}  // namespace

Result<std::unique_ptr<RecordReader>> RecordReader::open(const AccessSettings& access) {
  const auto timeout = parse_duration(access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  Result<std::string> password =
      choose_password("--redis-password-file", access.redis_password_file, access.redis_password);
  if (!password.ok()) return password.status();
  Result<std::string> sentinel_password =
      choose_password("--redis-sentinel-password-file", access.redis_sentinel_password_file,
                      access.redis_sentinel_password);
  if (!sentinel_password.ok()) return sentinel_password.status();
  Result<RedisOptions> target =
      redis_target(access, std::move(password).value(), std::move(sentinel_password).value());
  if (!target.ok()) return target.status();
  const RedisOptions& options = target.value();
  Result<std::unique_ptr<redis::Client>> client = redis::Client::create(options);
  if (!client.ok()) {
    return Status::error(client.status().code(), "--redis: " + client.status().text());
  }
  std::unique_ptr<RecordReader> reader(new RecordReader);
  reader->address_ = redis::place_of(options);
  reader->key_prefix_ = access.key_prefix;
  reader->timeout_ = timeout.value();
  reader->client_ = std::move(client).value();
  reader->store_ = redis::make_redis_store(reader->client_);
  const auto deadline = std::chrono::steady_clock::now() + timeout.value();
  while (!reaches_something(*reader->client_)) {
    // A person at a terminal wants to know at once, and can try again. Sentinels that are behind
    // are followed by others that are not.
    if (options.topology == RedisTopology::kSingle && !reader->client_->last_error().empty()) {
      return reader->explain(Status::error(StatusCode::kUnavailable, "no connection", true));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return reader->explain(
          Status::error(StatusCode::kUnavailable, "no connection within " + access.timeout, true));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return reader;
}

Status RecordReader::reach(const std::string& key) const {
  if (!client_->is_cluster()) return {};
  const std::uint16_t slot = redis::slot_of(key);
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (client_->connection_epoch(slot) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Status::error(
          StatusCode::kUnavailable,
          fmt::format("no connection within {} to the shard that has slot {}, where {} is",
                      base::format_length(timeout_), slot, key),
          true);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

Status RecordReader::explain(const Status& status) const {
  std::string text = "Redis at " + address_ + " (--redis, FCAP_REDIS): " + status.text();
  if (const std::string why = client_->last_error(); !why.empty()) text += ": " + why;
  return Status::error(status.code(), std::move(text), status.retryable());
}

std::string RecordReader::config_warning(const AccessSettings& access) {
  const auto recorded = blocking_get(*store_, redis::config_key(key_prefix_), timeout_);
  const auto retention = parse_duration(access.retention, "--retention");
  if (!recorded.ok() || !retention.ok()) return {};
  if (!recorded.value()) {
    return "no updater has ever written below the prefix \"" + key_prefix_ + "\" in database " +
           std::to_string(access.redis_database) + " of " + address_ +
           "; see --redis, --redis-database and --key-prefix\n";
  }
  const auto record = redis::parse_config(*recorded.value());
  if (!record.ok()) return redis::config_key(key_prefix_) + ": " + record.status().text() + "\n";
  const std::string differences =
      redis::config_differences(record.value(), {.key_prefix = key_prefix_,
                                                 .retention = retention.value(),
                                                 .null_user_ids = access.null_user_ids});
  if (differences.empty()) return {};
  return "the updater has other settings: " + differences + "\n";
}

std::optional<Instant> RecordReader::missing_before(const std::string& user) {
  refresh_missing();
  if (missing_.empty()) return std::nullopt;
  const int slot = redis::slot_of(key_of(user));
  for (const redis::MissingEvents& events : missing_) {
    if (events.slots.contains(slot)) return events.before;
  }
  return std::nullopt;
}

void RecordReader::refresh_missing() {
  const auto now = std::chrono::steady_clock::now();
  if (now < missing_known_until_) return;
  missing_known_until_ = now + kMissingKnownFor;
  missing_ = {redis::MissingEvents(redis::kAnyEvent)};
  const auto recorded = blocking_get(*store_, redis::config_key(key_prefix_), timeout_);
  if (!recorded.ok() || !recorded.value()) return;
  const auto record = redis::parse_config(*recorded.value());
  if (record.ok()) missing_ = record.value().missing_by_slot();
}

std::string RecordReader::key_of(const std::string& user) const {
  std::string key;
  ledger::user_key(key_prefix_, user, key);
  return key;
}

Result<std::optional<std::string>> RecordReader::read(const std::string& user) {
  const std::string key = key_of(user);
  if (const Status reached = reach(key); !reached.ok()) return explain(reached);
  Result<std::optional<std::string>> record = blocking_get(*store_, key, timeout_);
  if (!record.ok()) return explain(record.status());
  return record;
}

Result<CheckedRecord> RecordReader::read_for_check(const std::string& user) {
  const std::string key = key_of(user);
  if (const Status reached = reach(key); !reached.ok()) return explain(reached);
  Result<CheckedRecord> record = blocking_get_maybe_stale(*store_, key, timeout_);
  if (!record.ok()) return explain(record.status());
  return record;
}

Result<std::optional<std::chrono::milliseconds>> RecordReader::time_to_live(
    const std::string& user) {
  const std::string key = key_of(user);
  const redis::BlockingCall call{.words = {"PTTL", key}, .key = key};
  std::optional<std::int64_t> ttl_ms;
  std::string why = "PTTL was not answered";
  redis::call_and_wait(*client_, {&call, 1}, timeout_, [&](std::size_t, const redis::Reply& reply) {
    if (reply.kind == redis::Reply::Kind::kInteger) ttl_ms = reply.integer;
    if (reply.kind == redis::Reply::Kind::kError) {
      why = "PTTL: " + std::string(reply.text);
    }
  });
  if (!ttl_ms) return explain(Status::error(StatusCode::kUnavailable, why, true));
  if (*ttl_ms < 0) return std::optional<std::chrono::milliseconds>();
  return std::optional<std::chrono::milliseconds>(std::chrono::milliseconds(*ttl_ms));
}

}  // namespace fcap::cli
