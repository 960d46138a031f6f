#include "support/running_updater.h"

#include <mutex>
#include <utility>

#include <fcap/redis_url.h>

#include "redis/redis_store.h"
#include "support/or_throw.h"
#include "updater/commands/redis_parts.h"
#include "updater/options/part_options.h"

namespace fcap::testing {

struct RunningUpdater::Log {
  std::mutex mutex;
  std::string text;
};

RunningUpdater::RunningUpdater(const Options& options) : log_(std::make_shared<Log>()) {
  const LogCallback log = [kept = log_](LogLevel level, std::string_view line) {
    if (level < LogLevel::kInfo) return;
    const std::lock_guard lock(kept->mutex);
    kept->text.append(line).append("\n");
  };
  RedisOptions redis;
  redis = parse_redis_url(options.redis_address).value();
  redis.master_only = true;
  redis.user = options.redis_user;
  redis.password = options.redis_password;
  redis.log = log;
  client_ = or_throw(redis::Client::create(redis));
  store_ = redis::make_redis_store(client_, redis::Deadlines::kProgress);
  decoder_ = events::make_json_event_decoder();

  updater::UpdaterOptions wanted = options.updater;
  wanted.consumer.connection.brokers = options.brokers;
  wanted.consumer.topic = options.topic;
  wanted.consumer.group_id = options.group_id;
  wanted.consumer.group_instance_id = options.group_instance_id;
  if (!options.dead_letter_topic.empty()) {
    dead_letters_ = or_throw(updater::DeadLetterProducer::create(wanted.consumer.connection,
                                                                 options.dead_letter_topic, log));
  }
  updater::TopicWatchOptions watched = options.watch;
  watched.connection = wanted.consumer.connection;
  watched.topic = options.topic;
  watched.dead_letter_topic = options.dead_letter_topic;
  watched.group_id = options.group_id;
  watched.newest_event = updater::newest_event_by(events::make_json_event_decoder());
  health_.add_check([client = client_](updater::Health::Clock::time_point) {
    return updater::redis_trouble(*client);
  });
  watch_ = or_throw(updater::TopicWatch::create(watched, log));
  health_.add_check(
      [this](updater::Health::Clock::time_point now) { return watch_->trouble(now); });
  updater::UpdaterParts parts;
  parts.watch = watch_.get();
  parts.store = store_.get();
  parts.epoch = [client = client_] { return client->connection_epoch(); };
  if (client_->is_cluster()) parts.cluster = client_;
  parts.decoder = options.decoder != nullptr ? options.decoder : decoder_.get();
  parts.dead_letters = dead_letters_.get();
  parts.health = &health_;
  parts.redis_clock = [this] {
    ++looks_;
    return client_->health().clock_difference;
  };
  parts.log = log;
  updater_ = or_throw(updater::Updater::create(wanted, parts, metrics_));
  thread_ = std::jthread([this, log](const std::stop_token& stop) {
    if (const Status status = updater_->run(stop); !status.ok()) {
      log(LogLevel::kError, status.text());
    }
    ended_ = true;
  });
}

RunningUpdater::~RunningUpdater() {
  stop();
}

void RunningUpdater::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::string RunningUpdater::not_ready() const {
  std::string why;
  (void)health_.ready(updater::Health::Clock::now(), why);
  return why;
}

updater::Lag RunningUpdater::lag() const {
  return watch_->lag(updater::TopicWatch::Clock::now());
}

bool RunningUpdater::kafka_connected() const {
  return watch_->connected(updater::TopicWatch::Clock::now());
}

std::string RunningUpdater::log() const {
  const std::lock_guard lock(log_->mutex);
  return log_->text;
}

}  // namespace fcap::testing
