#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fcap/version.h>

#include "base/background_thread.h"
#include "base/clock.h"
#include "events/event_decoder.h"
#include "kafka/kafka_client.h"
#include "redis/redis_options_check.h"
#include "sources/rule_refresher.h"
#include "updater/commands/commands.h"
#include "updater/commands/redis_parts.h"
#include "updater/commands/status_pages.h"
#include "updater/compaction/trim_clock.h"
#include "updater/doctor/restart_check.h"
#include "updater/http/http_server.h"
#include "updater/metrics/exposition.h"
#include "updater/metrics/updater_health.h"
#include "updater/options/libraries.h"
#include "updater/options/part_options.h"
#include "updater/options/signatures.h"
#include "updater/pipeline/config_publisher.h"
#include "updater/pipeline/dead_letter_producer.h"
#include "updater/pipeline/lost_shards.h"
#include "updater/pipeline/updater.h"
#include "updater/process/process_log.h"
#include "updater/process/service_notify.h"
#include "updater/process/start_again.h"
#include "updater/watch/changed_files.h"
#include "updater/watch/redis_watch.h"
#include "updater/watch/topic_watch.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kFirstRulesWait{5};
constexpr std::chrono::seconds kStatusInterval{2};
// How often the open gaps are looked at. To tell Checkers of them takes three turns: one notices
// the change, one reads what is stored, and one writes.
constexpr std::chrono::milliseconds kGapsInterval{250};
// As often as libfcap looks at the files of its connections to Redis.
constexpr std::chrono::milliseconds kFilesInterval{5'000};

// The running daemon: its parts, in the order in which they need each other.
class Daemon {
 public:
  explicit Daemon(const Settings& settings)
      : settings_(settings), health_(settings.http.stalled_after) {}
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  Status prepare();
  Status run(const std::stop_token& stop);
  // It is not ready from now on. Any thread.
  void say_restarting() noexcept { restarting_ = true; }

 private:
  Status start_compaction();
  Status start_http();
  void start_rules();
  Status start_watch();
  Status make_updater();
  void make_publisher();
  [[nodiscard]] MarkNews mark_news(Health::Clock::time_point now);
  void start_beats();
  void say_restarted(Health::Clock::time_point now);
  [[nodiscard]] std::string status_line() const;

  const Settings settings_;
  std::optional<Health::Clock::time_point> restart_began_ = restart_began();
  std::atomic<bool> restarting_{false};
  std::stop_source stop_;  // of the main loop: somebody's request, or `config_` refuses
  Metrics metrics_;
  Health health_;
  RedisParts redis_;
  // Compaction has a connection of its own: what it waits for never opens the breaker of the
  // writes.
  RedisParts compaction_redis_;
  std::unique_ptr<redis::WatchedRecords> compaction_records_;
  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  std::unique_ptr<DeadLetterProducer> dead_letters_;
  std::unique_ptr<ConfigPublisher> config_;
  std::unique_ptr<LostShards> lost_shards_;  // null: Redis is no cluster
  TrimClock trim_clock_;                     // the updater sets it, compaction reads it
  std::unique_ptr<Compactor> compactor_;
  std::unique_ptr<sources::RuleRefresher> rules_;
  std::unique_ptr<TopicWatch> watch_;
  std::unique_ptr<RedisWatch> redis_watch_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<MetricsExposition> exposition_;
  std::unique_ptr<HttpServer> http_;
};

Status Daemon::prepare() {
  auto redis = connect_redis(settings_, redis::Deadlines::kProgress);
  if (!redis.ok()) return redis.status();
  redis_ = std::move(redis).value();
  health_.add_check([this](Health::Clock::time_point) -> std::string {
    return restarting_ ? "restarting to read files that have changed" : "";
  });
  health_.add_check(
      [client = redis_.client](Health::Clock::time_point) { return redis_trouble(*client); });
  redis_watch_ = std::make_unique<RedisWatch>(redis_.client, log_callback("redis"));
  health_.add_check([this](Health::Clock::time_point) { return redis_watch_->trouble(); });
  if (Status status = start_compaction(); !status.ok()) return status;
  start_rules();
  if (!settings_.kafka.dead_letter_topic.empty()) {
    auto producer =
        DeadLetterProducer::create(kafka_connection(settings_.kafka),
                                   settings_.kafka.dead_letter_topic, log_callback("dead letters"));
    if (!producer.ok()) return producer.status();
    dead_letters_ = std::move(producer).value();
  }
  if (Status status = start_watch(); !status.ok()) return status;
  if (Status status = make_updater(); !status.ok()) return status;
  make_publisher();
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
      *compaction_redis_.store, compactor_options(settings_), [this] { return trim_clock_.now(); },
      metrics_);
  compaction_records_ = redis::make_watched_records(*compaction_redis_.client);
  compactor_->set_watched(compaction_records_.get());
  compactor_->start();
  return {};
}

void Daemon::start_rules() {
  if (!has_rule_source(settings_)) {
    spdlog::info("no source of rules: an oversized record keeps its newest entries");
    return;
  }
  rules_ = std::make_unique<sources::RuleRefresher>(
      rule_source_options(settings_), rule_set_options(settings_),
      [this](std::shared_ptr<const RuleSet> rules) {
        if (compactor_) compactor_->set_rules(std::move(rules));
      },
      log_callback("rules"));
  const Status status = rules_->start(kFirstRulesWait);
  // Counting needs no rules; /readyz and the metrics say that there are none.
  if (!status.ok()) spdlog::warn("rules: {}", status.text());
  health_.rules_check([this] { return rules_->state().reloads > 0; });
}

Status Daemon::start_watch() {
  auto watch = TopicWatch::create(watch_options(settings_), log_callback("kafka"));
  if (!watch.ok()) return watch.status();
  watch_ = std::move(watch).value();
  health_.add_check([this](Health::Clock::time_point now) { return watch_->trouble(now); });
  return {};
}

Status Daemon::make_updater() {
  UpdaterParts parts;
  parts.store = redis_.store.get();
  parts.epoch = [client = redis_.client] { return client->connection_epoch(); };
  if (redis_.client->is_cluster()) parts.cluster = redis_.client;
  parts.decoder = decoder_.get();
  parts.dead_letters = dead_letters_.get();
  parts.hook = compactor_.get();
  parts.trim_clock = &trim_clock_;
  parts.health = &health_;
  parts.redis_clock = [client = redis_.client] { return client->health().clock_difference; };
  parts.watch = watch_.get();
  parts.log = log_callback("pipeline");
  auto signatures = make_signature_check(settings_.signatures, log_callback("signatures"));
  if (!signatures.ok()) return signatures.status();
  UpdaterOptions options = updater_options(settings_);
  options.intake.signatures = std::move(signatures).value();
  auto updater = Updater::create(std::move(options), std::move(parts), metrics_);
  if (!updater.ok()) return updater.status();
  updater_ = std::move(updater).value();
  return {};
}

void Daemon::make_publisher() {
  const redis::ConfigRecord record = config_record(settings_);
  const std::uint16_t slot = redis::slot_of(redis::config_key(record.key_prefix));
  config_ = std::make_unique<ConfigPublisher>(
      *redis_.store, record,
      ConfigPublisher::Reader{settings_.kafka.group_id, settings_.kafka.topic},
      log_callback("config"),
      [client = redis_.client] { return client->health().clock_difference; },
      [client = redis_.client, slot] { return client->connection_epoch(slot); });
  health_.add_check([this](Health::Clock::time_point) { return config_->trouble(); });
  if (!redis_.client->is_cluster()) return;
  lost_shards_ = std::make_unique<LostShards>(*redis_.store, record.key_prefix,
                                              settings_.kafka.group_id, settings_.kafka.topic);
}

MarkNews Daemon::mark_news(Health::Clock::time_point now) {
  MarkNews news = updater_->mark_news();
  if (lost_shards_) news.gone |= lost_shards_->tick(now, news.connections);
  return news;
}

Status Daemon::start_http() {
  ScrapeSources sources;
  sources.ready = [this] {
    std::string why;
    return health_.ready(Health::Clock::now(), why);
  };
  sources.kafka_connected = [this] { return watch_->connected(Health::Clock::now()); };
  sources.lag = [this] { return watch_->lag(Health::Clock::now()); };
  sources.redis_facts = [this] { return redis_watch_->facts(); };
  sources.redis_connected = [client = redis_.client] { return client->connected(); };
  sources.redis_connection_changes = [client = redis_.client] {
    return client->connection_epoch();
  };
  if (rules_) sources.rules = [this] { return rules_->state(); };
  const StatusPages::Rules rules = sources.rules;
  exposition_ = std::make_unique<MetricsExposition>(metrics_, std::move(sources));
  auto server =
      HttpServer::start(http_options(settings_), StatusPages(health_, *exposition_, rules));
  if (!server.ok()) return server.status();
  http_ = std::move(server).value();
  spdlog::info("serving http://{}:{}/metrics, /healthz and /readyz", settings_.http.address,
               http_->port());
  return {};
}

std::string Daemon::status_line() const {
  std::string why;
  const bool ready = health_.ready(Health::Clock::now(), why);
  for (char& c : why) {
    if (c == '\n') c = ';';
  }
  const auto lag = watch_->lag(Health::Clock::now()).messages;
  return fmt::format("{} partitions, {} events written, lag {}{}{}",
                     metrics_.assigned_partitions.value(), metrics_.events_written.value(),
                     lag ? std::to_string(*lag) : "unknown", ready ? "" : "; not ready: ", why);
}

void Daemon::start_beats() {
  // Ready means that the main loop works, not that Kafka and Redis answer: it waits for them by
  // itself, and a restart would help nobody.
  Health::Clock::duration interval = kStatusInterval;
  if (const auto watchdog = ServiceNotify::watchdog_interval()) {
    interval = std::min<Health::Clock::duration>(interval, *watchdog / 4);
  }
  const auto beat = [this, interval, due = Health::Clock::time_point{}]() mutable {
    const auto now = Health::Clock::now();
    config_->set_open_gaps(updater_->open_gaps());
    config_->set_marks(mark_news(now));
    config_->tick(now, base::wall_now());
    if (!config_->refused().ok()) stop_.request_stop();
    if (now < due) return;
    if (due == Health::Clock::time_point{}) ServiceNotify::ready();
    due = now + interval;
    ServiceNotify::alive(status_line());
    say_restarted(now);
    redis_watch_->tick(now);
  };
  health_.on_beat(std::min<Health::Clock::duration>(interval, kGapsInterval), beat);
}

void Daemon::say_restarted(Health::Clock::time_point now) {
  std::string why;
  if (!restart_began_ || !health_.ready(now, why)) return;
  const auto took = std::chrono::floor<std::chrono::milliseconds>(now - *restart_began_);
  spdlog::info("restarted: ready {} ms after it began to stop", took.count());
  restart_began_.reset();
}

Status Daemon::run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { stop_.request_stop(); });
  const std::stop_callback on_any_stop(stop_.get_token(), [this] { watch_->request_stop(); });
  Status status = updater_->run(stop_.get_token());
  if (status.ok()) status = config_->refused();
  if (compactor_) compactor_->stop();
  http_.reset();  // its pages ask the rules
  rules_.reset();
  spdlog::info("stopped: {} messages read, {} events written", metrics_.messages.value(),
               metrics_.events_written.value());
  return status;
}

}  // namespace

RunEnd run_command(const Settings& settings, const SettingSources& sources,
                   const std::stop_token& stop) {
  spdlog::info("fcap-updater {}: topic {} as {}, Redis {}", FCAP_VERSION, settings.kafka.topic,
               settings.kafka.group_id, redis::place_of(redis_options(settings, {})));
  // Before anything reads them.
  ChangedFiles files({.files = files_read_once(settings),
                      .check = [&sources] { return check_restart(sources); },
                      .not_before = restart_began().value_or(ChangedFiles::Clock::time_point{}) +
                                    ChangedFiles::kInterval,
                      .log = log_callback("files")});
  auto daemon = std::make_unique<Daemon>(settings);
  Status status = daemon->prepare();
  RunEnd end;
  if (status.ok()) {
    std::stop_source any_stop;
    const std::stop_callback on_signal(stop, [&any_stop] {
      ServiceNotify::stopping();
      any_stop.request_stop();
    });
    base::BackgroundThread look;
    status = look.start("files", [&] {
      pollfd ended{look.events().stop, POLLIN, 0};
      while (::poll(&ended, 1, static_cast<int>(kFilesInterval.count())) == 0) {
        if (!files.look(ChangedFiles::Clock::now())) continue;
        end.restart_began = ChangedFiles::Clock::now();
        daemon->say_restarting();
        if (!any_stop.stop_requested()) ServiceNotify::restarting();
        any_stop.request_stop();
        return;
      }
    });
    if (status.ok()) status = daemon->run(any_stop.get_token());
  }
  // A stop wins, and so does what a restart would not mend.
  if (stop.stop_requested() || !status.ok()) end.restart_began.reset();
  if (!status.ok()) {
    spdlog::error("{}", status.text());
    end.exit_code = status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  if (kafka::KafkaClient::is_left_behind()) {
    // Everything is committed that could be. Other clients would not end any sooner.
    spdlog::warn("the Kafka client did not shut down in time; not waiting for it");
    spdlog::default_logger_raw()->flush();
    if (!end.restart_began) _exit(end.exit_code);
    (void)daemon.release();  // ends with this program
  }
  return end;
}

}  // namespace fcap::updater
