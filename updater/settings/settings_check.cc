#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include <arpa/inet.h>
#include <fmt/core.h>

#include "kafka/conf.h"
#include "postgres/conninfo.h"
#include "redis/config_record.h"
#include "updater/settings/field_value.h"
#include "updater/settings/load_settings.h"
#include "updater/settings/redis_target.h"

namespace fcap::updater {
namespace {

struct OwnProperty {
  std::string_view name;
  std::string_view instead;
};

// What the write path's promises rest on, and what has a setting of its own.
constexpr std::array kOwnProperties = {
    OwnProperty{"bootstrap.servers", "use kafka.brokers"},
    OwnProperty{"metadata.broker.list", "use kafka.brokers"},
    OwnProperty{"group.id", "use kafka.group_id"},
    OwnProperty{"group.instance.id", "use kafka.group_instance_id"},
    OwnProperty{"client.id", "use kafka.client_id"},
    OwnProperty{"partition.assignment.strategy", "use kafka.assignment"},
    OwnProperty{"auto.offset.reset", "use kafka.offset_reset"},
    OwnProperty{"sasl.password", "use kafka.sasl_password_file"},
    OwnProperty{"enable.auto.commit", "offsets are committed after Redis has acknowledged"},
    OwnProperty{"auto.commit.enable", "offsets are committed after Redis has acknowledged"},
    OwnProperty{"enable.auto.offset.store", "offsets are stored after Redis has acknowledged"},
    OwnProperty{"enable.partition.eof", "the updater sets it where it needs it"},
};

bool is_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    in6_addr address{};
    return inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &address) == 1;
  }
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                              "XYZ0123456789-._") == std::string_view::npos;
}

// "host:port" as librdkafka reads it: a protocol may precede it, and the port may be left out.
bool is_broker(std::string_view text) {
  const std::size_t protocol = text.find("://");
  if (protocol != std::string_view::npos) text.remove_prefix(protocol + 3);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return is_host(text);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc{} && end == digits.data() + digits.size() && port != 0 &&
         is_host(text.substr(0, colon));
}

// The names that a broker accepts.
bool is_topic(std::string_view name) {
  constexpr std::size_t kNameBytesMax = 249;
  return name.size() <= kNameBytesMax && name != "." && name != ".." &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string_view::npos;
}

void check_topic(std::string_view field, std::string_view name,
                 std::vector<std::string>& mistakes) {
  if (is_topic(name)) return;
  mistakes.push_back(fmt::format(
      "{}: \"{}\" is not a valid topic name: at most 249 of a-z, A-Z, 0-9, '.', '_' and '-'", field,
      name));
}

void check_kafka(const KafkaSettings& kafka, std::vector<std::string>& mistakes) {
  for (const std::string& broker : kafka.brokers) {
    if (is_broker(broker)) continue;
    mistakes.push_back(
        fmt::format("kafka.brokers: \"{}\" is not host:port or [v6]:port (port 1-65535)", broker));
  }
  check_topic("kafka.topic", kafka.topic, mistakes);
  check_topic("kafka.dead_letter_topic", kafka.dead_letter_topic, mistakes);
  if (kafka.dead_letter_topic == kafka.topic) {
    mistakes.emplace_back("kafka.dead_letter_topic: must not be kafka.topic");
  }
  for (const auto& [name, value] : kafka.properties) {
    const auto* const own = std::ranges::find(kOwnProperties, name, &OwnProperty::name);
    if (own != kOwnProperties.end()) {
      mistakes.push_back(fmt::format("kafka.properties: \"{}\": {}", name, own->instead));
    } else if (const Status status = kafka::check_property(name, value); !status.ok()) {
      mistakes.push_back("kafka.properties: " + status.text());
    }
  }
}

void check_redis(const LoadedSettings& loaded, std::vector<std::string>& mistakes) {
  const auto target = redis_target(loaded.settings.redis);
  if (!target.ok()) {
    mistakes.push_back(target.status().text());
    return;
  }
  const auto origin = loaded.origins.find("redis.addresses");
  const bool in_the_open = origin != loaded.origins.end() && origin->second != "environment";
  if (in_the_open && target.value().password != loaded.settings.redis.password) {
    mistakes.emplace_back("redis.addresses: the URL holds a password; use redis.password_file");
  }
}

void check_postgres(const LoadedSettings& loaded, std::vector<std::string>& mistakes) {
  const std::string& conninfo = loaded.settings.postgres.conninfo;
  if (conninfo.empty()) return;
  const auto origin = loaded.origins.find("postgres.conninfo");
  const bool in_the_open = origin != loaded.origins.end() && origin->second != "environment";
  if (const Status readable = postgres::explain_conninfo(conninfo); !readable.ok()) {
    // libpq quotes what it cannot read, which may be a part of the password.
    mistakes.push_back("postgres.conninfo: " +
                       (in_the_open ? readable.text() : "not a libpq connection string"));
    return;
  }
  if (in_the_open && postgres::has_password(conninfo)) {
    mistakes.emplace_back("postgres.conninfo: holds a password; use postgres.password_file");
  }
}

void check_ledger(const Settings& settings, std::vector<std::string>& mistakes) {
  const LedgerSettings& ledger = settings.ledger;
  // The same rule as the Checker's, so that no pair of settings can never agree.
  if (const Status prefix = redis::check_key_prefix(ledger.key_prefix); !prefix.ok()) {
    mistakes.push_back("ledger." + prefix.text());
  }
  if (settings.compaction.tail_bytes_min >= ledger.record_bytes_max) {
    mistakes.emplace_back("compaction.tail_bytes_min: must be below ledger.record_bytes_max");
  }
  if (ledger.allowed_future >= ledger.retention) {
    mistakes.emplace_back("ledger.allowed_future: must be below ledger.retention");
  }
}

void check_pipeline(const PipelineSettings& pipeline, std::vector<std::string>& mistakes) {
  if (pipeline.retry_backoff_min > pipeline.retry_backoff_max) {
    mistakes.emplace_back(
        "pipeline.retry_backoff_min: must not be above pipeline.retry_backoff_max");
  }
  if (pipeline.in_flight_bytes_max < pipeline.message_bytes_max) {
    mistakes.emplace_back(
        "pipeline.in_flight_bytes_max: must not be below pipeline.message_bytes_max");
  }
}

void check_http(const HttpSettings& http, std::vector<std::string>& mistakes) {
  std::string address = http.address;
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  in_addr v4{};
  in6_addr v6{};
  if (address == "localhost" || inet_pton(AF_INET, address.c_str(), &v4) == 1 ||
      inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    return;
  }
  mistakes.push_back(
      fmt::format("http.address: \"{}\" is neither an IP address nor localhost", http.address));
}

}  // namespace

void check_settings(const LoadedSettings& loaded, std::vector<std::string>& mistakes) {
  check_kafka(loaded.settings.kafka, mistakes);
  check_redis(loaded, mistakes);
  check_postgres(loaded, mistakes);
  check_ledger(loaded.settings, mistakes);
  check_pipeline(loaded.settings.pipeline, mistakes);
  check_http(loaded.settings.http, mistakes);
}

}  // namespace fcap::updater
