#include "redis/options_check.h"

#include <string>

#include "redis/resp_parser.h"

namespace fcap::redis {
namespace {

using std::chrono::milliseconds;

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

}  // namespace

Result<Address> check_options(const RedisOptions& options) {
  if (options.addresses.empty()) return invalid("addresses: one is needed");
  if (options.addresses.size() > 1) {
    return invalid(
        "addresses: more than one means a cluster, which is not supported yet; give one");
  }
  if (!options.user.empty() && options.password.empty()) {
    return invalid("user: is of no use without a password");
  }
  if (options.database < 0) return invalid("database: must not be negative");
  if (!(options.breaker_failure_share >= 0 && options.breaker_failure_share <= 1)) {
    return invalid("breaker_failure_share: must be from 0 to 1");
  }
  for (const Status& status : {
           check_wait("connect_timeout", options.connect_timeout),
           check_wait("stale_reset", options.stale_reset),
           check_age(options.connection_max_age),
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
  return parse_address(options.addresses.front());
}

}  // namespace fcap::redis
