#include "updater/run_command.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <fcap/version.h>

#include "config/rule_refresher.h"
#include "events/event_decoder.h"
#include "redis/redis_store.h"
#include "updater/command_line.h"
#include "updater/config_publisher.h"
#include "updater/http/http_server.h"
#include "updater/log.h"
#include "updater/metrics/exposition.h"
#include "updater/metrics/health.h"
#include "updater/pipeline/dead_letter_producer.h"
#include "updater/pipeline/from_settings.h"
#include "updater/pipeline/updater.h"
#include "updater/service_notify.h"
#include "updater/settings/derive.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kFirstRulesWait{5};
constexpr std::chrono::seconds kStatusInterval{2};

/// The running daemon: its parts, in the order in which they need each other.
class Daemon {
 public:
  explicit Daemon(const Settings& settings)
      : settings_(settings), health_(settings.http.stalled_after) {}
  /// Compaction's thread asks the updater for the time, so it ends before the updater does.
  ~Daemon() {
    if (compactor_) compactor_->stop();
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  Status prepare();
  Status run(const std::stop_token& stop);

 private:
  Status start_compaction();
  Status start_http();
  void start_rules();
  Status make_updater();
  void start_beats();
  bool page(const std::string& path, HttpAnswer& answer) const;
  [[nodiscard]] std::string status_line() const;

  const Settings settings_;
  Metrics metrics_;
  Health health_;
  RedisParts redis_;
  // Of its own: what compaction waits for never opens the breaker of the writes.
  RedisParts compaction_redis_;
  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  std::unique_ptr<DeadLetterProducer> dead_letters_;
  std::unique_ptr<ConfigPublisher> config_;
  // Compaction's clock is the updater's, and the updater tells compaction what it has written.
  std::atomic<const Updater*> clock_{nullptr};
  std::unique_ptr<Compactor> compactor_;
  std::unique_ptr<config::RuleRefresher> rules_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<MetricsExposition> exposition_;
  std::unique_ptr<HttpServer> http_;
};

Status Daemon::prepare() {
  auto redis = connect_redis(settings_);
  if (!redis.ok()) return redis.status();
  redis_ = std::move(redis).value();
  if (Status status = start_compaction(); !status.ok()) return status;
  start_rules();
  if (!settings_.kafka.dead_letter_topic.empty()) {
    auto producer =
        DeadLetterProducer::create(kafka_connection(settings_.kafka),
                                   settings_.kafka.dead_letter_topic, log_callback("dead letters"));
    if (!producer.ok()) return producer.status();
    dead_letters_ = std::move(producer).value();
  }
  if (Status status = make_updater(); !status.ok()) return status;
  if (Status status = settings_.http.enabled ? start_http() : Status{}; !status.ok()) return status;
  start_beats();
  return {};
}

Status Daemon::start_compaction() {
  if (!settings_.compaction.enabled) return {};
  auto redis = connect_redis(settings_);
  if (!redis.ok()) return redis.status();
  compaction_redis_ = std::move(redis).value();
  compactor_ = std::make_unique<Compactor>(
      *compaction_redis_.store, compactor_options(settings_),
      [this]() -> std::optional<Instant> {
        const Updater* const updater = clock_.load(std::memory_order_acquire);
        return updater == nullptr ? std::nullopt : updater->trim_now();
      },
      metrics_);
  compactor_->start();
  return {};
}

void Daemon::start_rules() {
  if (!has_rule_source(settings_)) {
    spdlog::info("no source of rules: an oversized record keeps its newest entries");
    return;
  }
  rules_ = std::make_unique<config::RuleRefresher>(
      rule_source_options(settings_), RuleSet::Options{.retention = settings_.ledger.retention},
      [this](std::shared_ptr<const RuleSet> rules) {
        if (compactor_) compactor_->set_rules(std::move(rules));
      },
      log_callback("rules"));
  const Status status = rules_->start(kFirstRulesWait);
  // Counting needs no rules; /readyz and the metrics say that there are none.
  if (!status.ok()) spdlog::warn("rules: {}", status.text());
  health_.rules_check([this] { return rules_->state().reloads > 0; });
}

Status Daemon::make_updater() {
  UpdaterParts parts;
  parts.store = redis_.store.get();
  parts.epoch = [client = redis_.client] { return client->connection_epoch(); };
  parts.decoder = decoder_.get();
  parts.dead_letters = dead_letters_.get();
  parts.hook = compactor_.get();
  parts.health = &health_;
  parts.log = log_callback("pipeline");
  auto updater = Updater::create(updater_options(settings_), std::move(parts), metrics_);
  if (!updater.ok()) return updater.status();
  updater_ = std::move(updater).value();
  clock_.store(updater_.get(), std::memory_order_release);
  return {};
}

Status Daemon::start_http() {
  ScrapeSources sources;
  sources.redis_connected = [client = redis_.client] { return client->connected(); };
  sources.redis_connection_changes = [client = redis_.client] {
    return client->connection_epoch();
  };
  if (rules_) sources.rules = [this] { return rules_->state(); };
  exposition_ = std::make_unique<MetricsExposition>(metrics_, std::move(sources));
  auto server = HttpServer::start(
      {.address = settings_.http.address, .port = static_cast<std::uint16_t>(settings_.http.port)},
      [this](const std::string& path, HttpAnswer& answer) { return page(path, answer); });
  if (!server.ok()) return server.status();
  http_ = std::move(server).value();
  spdlog::info("serving http://{}:{}/metrics, /healthz and /readyz", settings_.http.address,
               http_->port());
  return {};
}

bool Daemon::page(const std::string& path, HttpAnswer& answer) const {
  if (path == "/metrics") {
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = exposition_->text();
  } else if (path == "/healthz") {
    const bool healthy = health_.healthy(Health::Clock::now());
    answer.status = healthy ? 200 : 503;
    answer.body = healthy ? "ok\n" : "the main loop has not come round\n";
  } else if (path == "/readyz") {
    std::string why;
    const bool ready = health_.ready(Health::Clock::now(), why);
    answer.status = ready ? 200 : 503;
    answer.body = ready ? "ready\n" : why;
  } else {
    return false;
  }
  return true;
}

std::string Daemon::status_line() const {
  std::string why;
  const bool ready = health_.ready(Health::Clock::now(), why);
  for (char& c : why) {
    if (c == '\n') c = ';';
  }
  return fmt::format("{} partitions, {} events written, lag {}{}{}",
                     metrics_.assigned_partitions.value(), metrics_.events_written.value(),
                     metrics_.lag_messages.value(), ready ? "" : "; not ready: ", why);
}

void Daemon::start_beats() {
  redis::ConfigRecord record;
  record.key_prefix = settings_.ledger.key_prefix;
  record.retention = settings_.ledger.retention;
  record.null_user_ids = settings_.ledger.null_user_ids;
  config_ = std::make_unique<ConfigPublisher>(*redis_.store, record, log_callback("config"));
  // Ready means that the main loop works, not that Kafka and Redis answer: it waits for them by
  // itself, and a restart would help nobody.
  Health::Clock::duration interval = kStatusInterval;
  if (const auto watchdog = ServiceNotify::watchdog_interval()) {
    interval = std::min<Health::Clock::duration>(interval, *watchdog / 4);
  }
  health_.on_beat(interval, [this, first = true]() mutable {
    if (std::exchange(first, false)) ServiceNotify::ready();
    ServiceNotify::alive(status_line());
    config_->poll(Health::Clock::now());
  });
}

Status Daemon::run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [] { ServiceNotify::stopping(); });
  Status status = updater_->run(stop);
  if (compactor_) compactor_->stop();
  http_.reset();  // its pages ask the rules
  rules_.reset();
  spdlog::info("stopped: {} messages read, {} events written", metrics_.messages.value(),
               metrics_.events_written.value());
  return status;
}

}  // namespace

Result<RedisParts> connect_redis(const Settings& settings) {
  auto client = redis::Client::create(redis_options(settings, log_callback("redis")));
  if (!client.ok()) return client.status();
  RedisParts parts;
  parts.client = std::move(client).value();
  parts.store = redis::make_redis_store(parts.client);
  return parts;
}

Compactor::Options compactor_options(const Settings& settings) {
  const CompactionSettings& compaction = settings.compaction;
  Compactor::Options options;
  options.users.users_max = static_cast<std::size_t>(compaction.queue_users_max);
  options.users.tail_bytes_min = static_cast<std::size_t>(compaction.tail_bytes_min);
  options.users.tail_share = compaction.tail_share;
  options.users.record_bytes_max = static_cast<std::size_t>(settings.ledger.record_bytes_max);
  options.records.retention = settings.ledger.retention;
  options.records.record_bytes_max = options.users.record_bytes_max;
  options.records.trim_without_rules = !has_rule_source(settings);
  options.records.in_flight_max = static_cast<std::size_t>(compaction.in_flight_max);
  options.records.deadline = compaction.redis_deadline;
  options.quiet_after = compaction.quiet_after;
  options.drain_timeout = compaction.drain_timeout;
  return options;
}

int run_command(const Settings& settings, const std::stop_token& stop) {
  spdlog::info("fcap-updater {}: topic {} as {}, Redis {}", FCAP_VERSION, settings.kafka.topic,
               settings.kafka.group_id, settings.redis.addresses.front());
  Daemon daemon(settings);
  Status status = daemon.prepare();
  if (status.ok()) status = daemon.run(stop);
  if (status.ok()) return kExitOk;
  spdlog::error("{}", status.text());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace fcap::updater
