#include "redis/redis_options_check.h"

#include <string>
#include <utility>

#include "redis/resp_parser.h"

namespace fcap::redis {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kDirectConnectionsMax = 64;
constexpr std::chrono::seconds kReplicaLagMin{2};
constexpr std::chrono::seconds kReplicaLagMax{60};

Status invalid(const std::string& text) {
  return Status::error(StatusCode::kInvalidArgument, "redis " + text);
}

Status check_pause(const char* name, milliseconds from, milliseconds to) {
  if (from >= milliseconds{1} && from <= to && to <= std::chrono::hours{1}) return {};
  return invalid(std::string(name) + "_min and _max: need 1 ms <= min <= max <= 1 h");
}

Status check_wait(const char* name, milliseconds value) {
  if (value >= milliseconds{1} && value <= std::chrono::hours{1}) return {};
  return invalid(std::string(name) + ": must be from 1 ms to 1 h");
}

Status check_age(milliseconds age) {
  if (age == milliseconds{0}) return {};
  if (age >= std::chrono::seconds{1} && age <= std::chrono::hours{24}) return {};
  return invalid("connection_max_age: must be 0 or from 1 s to 24 h");
}

Status check_count(const char* name, std::size_t value, std::size_t value_max) {
  if (value >= 1 && value <= value_max) return {};
  return invalid(std::string(name) + ": must be from 1 to " + std::to_string(value_max));
}

Status check_value_bytes(std::size_t bytes) {
  if (bytes >= 1024 && bytes <= RespParser::kReplyBytesMax) return {};
  return invalid("value_bytes_max: must be from 1024 to " +
                 std::to_string(RespParser::kReplyBytesMax));
}

Status check_tls(const RedisTls& tls) {
  if (!tls.key_file.empty() && tls.certificate_file.empty()) {
    return invalid("tls.key_file: is of no use without tls.certificate_file");
  }
  if (!tls.enabled &&
      !(tls.ca_file.empty() && tls.ca_directory.empty() && tls.certificate_file.empty())) {
    return invalid("tls.enabled: must be set for the other options of tls to have a meaning");
  }
  return {};
}

Status check_topology(const RedisOptions& options) {
  if (options.addresses.empty()) return invalid("addresses: at least one is needed");
  if (options.topology == RedisTopology::kSentinel) {
    if (!options.sentinel_master.empty()) return {};
    return invalid("sentinel_master: topology sentinel needs the master's name");
  }
  if (options.topology == RedisTopology::kCluster) {
    if (options.database != 0) return invalid("database: a cluster has only 0");
  } else if (options.addresses.size() > 1) {
    return invalid(
        "addresses: topology single takes one address; if these are Sentinels, set topology to "
        "sentinel and name the master in sentinel_master; if they are nodes of a Redis Cluster, "
        "set it to cluster");
  }
  if (options.sentinel_master.empty()) return {};
  return invalid("sentinel_master: is used with topology sentinel only");
}

Status check_replica_reads(const RedisOptions& options) {
  if (options.replica_lag_max < kReplicaLagMin || options.replica_lag_max > kReplicaLagMax) {
    return invalid("replica_lag_max: must be from 2 s to 60 s");
  }
  if (options.replica_reads == RedisReplicaReads::kNever) return {};
  if (options.master_only) {
    return invalid(
        "replica_reads: must be never for a process that needs the master (master_only)");
  }
  if (options.topology != RedisTopology::kSingle) return {};
  return invalid(
      "replica_reads: needs topology sentinel or cluster, because Sentinels and nodes of a cluster "
      "know where the replicas are; with topology single it must be never");
}

Status check_accounts(const RedisOptions& options) {
  if (!options.user.empty() && options.password.empty() && options.password_file.empty()) {
    return invalid("user: is of no use without a password");
  }
  if (!options.password.empty() && !options.password_file.empty()) {
    return invalid("password and password_file: give one of them");
  }
  if (!options.sentinel_user.empty() && options.sentinel_password.empty() &&
      options.sentinel_password_file.empty()) {
    return invalid("sentinel_user: is of no use without sentinel_password");
  }
  if (!options.sentinel_password.empty() && !options.sentinel_password_file.empty()) {
    return invalid("sentinel_password and sentinel_password_file: give one of them");
  }
  return {};
}

}  // namespace

Result<std::vector<Address>> check_addresses(const RedisOptions& options) {
  if (Status status = check_topology(options); !status.ok()) return status;
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) {
    auto address = parse_address(text);
    if (!address.ok()) return address.status();
    if (!address.value().path.empty() && options.topology != RedisTopology::kSingle) {
      return invalid("addresses: \"" + text +
                     "\" is a socket's path; Sentinels and nodes of a cluster need host:port");
    }
    addresses.push_back(std::move(address).value());
  }
  return addresses;
}

std::string place_of(const RedisOptions& options) {
  std::string text;
  if (options.topology == RedisTopology::kSentinel) {
    text = options.sentinel_master + " of the Sentinels ";
  }
  if (options.topology == RedisTopology::kCluster) text = "the cluster of ";
  for (std::size_t i = 0; i < options.addresses.size(); ++i) {
    if (i != 0) text += ", ";
    text += options.addresses[i];
  }
  return text;
}

Result<std::vector<Address>> check_options(const RedisOptions& options) {
  if (Status status = check_accounts(options); !status.ok()) return status;
  if (options.database < 0) return invalid("database: must not be negative");
  if (!(options.breaker_failure_share >= 0 && options.breaker_failure_share <= 1)) {
    return invalid("breaker_failure_share: must be from 0 to 1");
  }
  if (options.direct_connections > kDirectConnectionsMax) {
    return invalid("direct_connections: must be from 0 to " +
                   std::to_string(kDirectConnectionsMax));
  }
  for (const Status& status : {
           check_wait("connect_timeout", options.connect_timeout),
           check_wait("stale_reset", options.stale_reset),
           check_age(options.connection_max_age),
           check_tls(options.tls),
           check_replica_reads(options),
           check_pause("reconnect_backoff", options.reconnect_backoff_min,
                       options.reconnect_backoff_max),
           check_pause("breaker_backoff", options.breaker_backoff_min, options.breaker_backoff_max),
           check_count("io_threads", options.io_threads, 64),
           check_count("queue_operations_max", options.queue_operations_max, 1U << 24U),
           check_count("mget_keys_max", options.mget_keys_max, 4096),
           check_value_bytes(options.value_bytes_max),
       }) {
    if (!status.ok()) return status;
  }
  return check_addresses(options);
}

}  // namespace fcap::redis
