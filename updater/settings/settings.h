#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fcap/checker_options.h>
#include <fcap/defaults.h>
#include <fcap/redis_options.h>

namespace fcap::updater {

using std::chrono::milliseconds;

/// The topic, and how it is read. JSON "kafka".
struct KafkaSettings {
  enum class Assignment : std::uint8_t { kEager, kCooperativeSticky };
  enum class OffsetReset : std::uint8_t { kEarliest, kLatest, kError };

  std::vector<std::string> brokers = {"127.0.0.1:9092"};
  std::string topic = "impressions";
  std::string dead_letter_topic = "impressions.dead";
  std::string group_id = "fcap-updater";
  std::string group_instance_id;
  std::string client_id = "fcap-updater";
  Assignment assignment = Assignment::kEager;
  OffsetReset offset_reset = OffsetReset::kEarliest;
  /// Without an answer from any broker for this long it is not ready, and the lag is unknown.
  milliseconds silence_max{8'000};
  std::string sasl_password;
  /// Given to librdkafka as they are.
  std::map<std::string, std::string> properties;
};

/// JSON "redis".
struct RedisSettings {
  RedisTopology topology = RedisTopology::kSingle;
  std::vector<std::string> addresses = {"127.0.0.1:6379"};
  std::string sentinel_master;
  std::string sentinel_user;
  std::string sentinel_password;
  std::string user;
  std::string password;
  std::int64_t database = 0;
  milliseconds connect_timeout{1000};
  std::int64_t io_threads = 1;
  RedisTls tls;
};

/// Where rules come from; only the trimming of oversized records needs them. JSON "postgres".
struct PostgresSettings {
  std::string conninfo;
  std::string password;
};

/// JSON "rules".
struct RulesSettings {
  std::string snapshot_file;
  milliseconds poll_interval{60'000};
  bool listen = true;
  double shrink_refused_below = 0.5;
  bool accept_any_shrink = false;
};

/// What is recorded; must be what the ad servers' Checkers have. JSON "ledger".
struct LedgerSettings {
  std::string key_prefix = kDefaultKeyPrefix;
  milliseconds retention = kDefaultRetention;
  std::int64_t record_bytes_max = kDefaultRecordBytesMax;
  milliseconds allowed_future = std::chrono::minutes{5};
  std::vector<std::string> null_user_ids = {kNullUserId};
};

/// From Kafka to Redis. JSON "pipeline".
struct PipelineSettings {
  std::int64_t batch_events_max = 80'000;
  milliseconds batch_wait{5};
  /// Partitions are paused while more than this waits for Redis.
  std::int64_t in_flight_bytes_max = std::int64_t{32} << 20;
  std::int64_t message_bytes_max = std::int64_t{64} * 1024;
  double rejected_share_max = 0.9;
  milliseconds redis_deadline{2'000};
  milliseconds retry_backoff_min{20};
  milliseconds retry_backoff_max{2'000};
  milliseconds commit_interval{1'000};
  milliseconds mark_interval{100};
  /// From this many messages on, a gap does not hold up the later ones; 0: every gap does.
  std::int64_t gap_messages_min = 200'000;
  /// The longest that revoke and exit wait for what is in flight.
  milliseconds drain_timeout{20'000};
};

/// Impressions that ad servers expect. JSON "reservation".
struct ReservationSettings {
  milliseconds max_life = kDefaultReservationLifeMax;
};

/// Who may have made the events' ids. JSON "signatures".
struct SignatureSettings {
  enum class Required : std::uint8_t { kNothing, kImpressions, kAll };

  std::string key_file;
  Required required = Required::kImpressions;
  milliseconds lifetime = std::chrono::hours{24};
  milliseconds early_allowed{0};
};

/// JSON "compaction".
struct CompactionSettings {
  bool enabled = true;
  std::int64_t tail_bytes_min = 256;
  double tail_share = 0.25;
  milliseconds quiet_after{60'000};
  std::int64_t queue_users_max = 1'000'000;
  std::int64_t in_flight_max = 64;
  milliseconds redis_deadline{1'000};
  /// On stop, what is queued is compacted for at most this long; 0: not at all.
  milliseconds drain_timeout{5'000};
  std::int64_t sweep_keys_per_second = 5'000;
  std::int64_t sweep_scan_count = 500;
};

/// JSON "http".
struct HttpSettings {
  bool enabled = true;
  std::string address = "127.0.0.1";
  std::int64_t port = 9464;
  /// A main loop without progress for this long is unhealthy, and the watchdog is no longer fed.
  milliseconds stalled_after{30'000};
};

/// JSON "log".
struct LogSettings {
  enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };
  enum class Format : std::uint8_t { kText, kJson };

  Level level = Level::kInfo;
  Format format = Format::kText;
};

/// Everything that can be configured. The defaults stand here; names, ranges, units and texts stand
/// in settings/fields.cc, and docs/configuration.md is made from both.
struct Settings {
  KafkaSettings kafka;
  RedisSettings redis;
  PostgresSettings postgres;
  RulesSettings rules;
  LedgerSettings ledger;
  ReservationSettings reservation;
  SignatureSettings signatures;
  PipelineSettings pipeline;
  CompactionSettings compaction;
  HttpSettings http;
  LogSettings log;
  /// From which file a secret was read, by its setting.
  std::map<std::string, std::string> secret_files;
};

}  // namespace fcap::updater
