#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/redis_options.h>

#include "updater/settings/settings.h"

namespace fcap::cli {

/// How to reach the servers and read what they hold; the same for every subcommand.
struct AccessSettings {
  std::string redis = "127.0.0.1:6379";
  std::string redis_user;
  std::string redis_password;       ///< from the environment only
  std::string redis_password_file;  ///< wins over redis_password
  int redis_database = 0;
  std::string redis_sentinel_user;
  std::string redis_sentinel_password;       ///< from the environment only
  std::string redis_sentinel_password_file;  ///< wins over redis_sentinel_password
  RedisTls redis_tls;
  std::string key_prefix = kDefaultKeyPrefix;
  std::string timeout = "5s";
  std::vector<std::string> null_user_ids = {kNullUserId};

  std::string rules_file;
  std::string postgres;
  std::string snapshot_file;
  std::string segments_directory;
  std::string retention = "32d";
};

/// What check and explain are asked.
struct QuestionSettings {
  std::string user;
  bool has_user = false;  ///< whether one is given (an empty id is valid)
  std::vector<std::string> candidates;
  std::vector<std::string> segments;
  std::string input;   ///< questions, one per line; "-" is standard input
  std::string events;  ///< event messages, one per line: answer from these, without any server

  /// Whether the questions are lines: with --events they are on standard input, unless one is asked
  /// on the command line.
  [[nodiscard]] bool from_lines() const { return !input.empty() || (!events.empty() && !has_user); }
};

struct ShowSettings {
  std::string user;
  bool has_user = false;
  std::string input;               ///< users, one per line; "-" is standard input
  std::vector<std::string> names;  ///< ids that may stand in the record, told by hand
};

struct RulesCommandSettings {
  bool check = false;
};

/// How to reach Kafka, and which topic there; of the subcommands that do.
struct TopicSettings {
  std::string brokers = {};
  std::string topic = "impressions";
  /// librdkafka's properties, one "name=value" per line.
  std::string config_file = {};
  /// librdkafka's properties, each "NAME=VALUE"; they win over the file.
  std::vector<std::string> properties = {};
  /// The same from the updater's configuration; both others win over them.
  std::map<std::string, std::string> of_updater = {};
};

struct AuditSettings {
  TopicSettings kafka = {.brokers = "127.0.0.1:9092"};
  std::vector<std::string> more_topics;  ///< that the same ledgers count, on the same brokers
  std::string user_prefix;
  std::string from_offsets;
  std::string to_offsets;
  int propagation_ms = 1000;
  std::string allowed_future = "5m";
  std::size_t message_bytes_max = std::size_t{64} * 1024;  ///< as the updater's
  updater::SignatureSettings signatures;                   ///< the updater's
};

struct EraseSettings {
  std::string user;
  std::string input;  ///< users, one per line; "-" is standard input
  TopicSettings kafka = {.brokers = "127.0.0.1:9092"};
  bool yes = false;
};

struct SimulateSettings {
  std::vector<std::string> log_files;
  std::vector<std::string> rules_files;
  TopicSettings kafka;               ///< without brokers no topic is read
  std::vector<std::string> columns;  ///< "NAME=COLUMN": what a CSV log calls a column
  std::string html;
  std::string csv;
  std::string sweep;
  std::string names;
  std::optional<double> cpm;
  bool progress = false;
};

/// A whole command line.
struct CliSettings {
  enum class Subcommand : std::uint8_t {
    kNone,
    kCheck,
    kShow,
    kExplain,
    kRules,
    kAudit,
    kSimulate,
    kErase
  };
  Subcommand command = Subcommand::kNone;
  AccessSettings access;
  std::string updater_config;  ///< fcap-updater's file, for what is not given otherwise
  bool json = false;
  std::string time_zone;  ///< of what is printed for people; empty: UTC
  std::string at;
  QuestionSettings check;
  ShowSettings show;
  QuestionSettings explain;
  RulesCommandSettings rules;
  AuditSettings audit;
  SimulateSettings simulate;
  EraseSettings erase;
};

}  // namespace fcap::cli
