#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include <fcap/redis_url.h>

#include "base/outside_text.h"
#include "base/time_text.h"
#include "redis/address.h"

namespace fcap {
namespace {

struct Scheme {
  std::string_view prefix;
  RedisTopology topology;
  bool is_encrypted;
  std::string_view default_port;
  std::string_view form;
};

constexpr std::string_view kSingleForm = "redis://[user[:password]@]host[:port][/database]";
constexpr std::string_view kSentinelForm =
    "redis-sentinel://[user[:password]@]host[:port],host[:port]/master-name[/database]"
    "[?replica_reads=when_master_fails&replica_lag_max=10s]";
constexpr std::string_view kClusterForm =
    "redis-cluster://[user[:password]@]host[:port],host[:port]"
    "[?replica_reads=when_master_fails&replica_lag_max=10s]";
constexpr std::string_view kRedisPort = "6379";
constexpr std::string_view kSentinelPort = "26379";
constexpr Scheme kSchemes[] = {
    {"redis://", RedisTopology::kSingle, false, kRedisPort, kSingleForm},
    {"rediss://", RedisTopology::kSingle, true, kRedisPort, kSingleForm},
    {"redis-sentinel://", RedisTopology::kSentinel, false, kSentinelPort, kSentinelForm},
    {"rediss-sentinel://", RedisTopology::kSentinel, true, kSentinelPort, kSentinelForm},
    {"redis-cluster://", RedisTopology::kCluster, false, kRedisPort, kClusterForm},
    {"rediss-cluster://", RedisTopology::kCluster, true, kRedisPort, kClusterForm},
};

constexpr std::pair<std::string_view, RedisReplicaReads> kReplicaReads[] = {
    {"never", RedisReplicaReads::kNever},
    {"when_master_fails", RedisReplicaReads::kWhenMasterFails},
    {"nearest", RedisReplicaReads::kNearest},
};

Status wrong(std::string why, std::string_view form = {}) {
  if (!form.empty()) why += "; write " + std::string(form);
  return Status::error(StatusCode::kInvalidArgument, "redis URL: " + std::move(why));
}

// "%40" is "@".
std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

std::string with_port(std::string_view host, std::string_view port) {
  std::string address(host);
  const bool is_bare_v6 = host.starts_with('[') && host.ends_with(']');
  if (is_bare_v6 || host.find(':') == std::string_view::npos) address.append(":").append(port);
  return address;
}

Status take_account(std::string_view text, RedisOptions& options) {
  const auto colon = text.find(':');
  auto user = unescaped(text.substr(0, colon));
  if (!user) return wrong("the user's name has a \"%\" that no two hexadecimal digits follow");
  if (!user->empty()) options.user = std::move(*user);
  if (colon == std::string_view::npos) return {};
  auto password = unescaped(text.substr(colon + 1));
  if (!password) return wrong("the password has a \"%\" that no two hexadecimal digits follow");
  options.password = std::move(*password);
  options.password_file.clear();
  return {};
}

Status take_hosts(std::string_view hosts, const Scheme& scheme, RedisOptions& options) {
  options.addresses.clear();
  if (hosts.empty()) return wrong("it names no host", scheme.form);
  for (;;) {
    const auto comma = hosts.find(',');
    const std::string_view host = hosts.substr(0, comma);
    std::string address = with_port(host, scheme.default_port);
    if (host.empty() || !redis::parse_address(address).ok()) {
      return wrong(
          "\"" + base::printable(host) + "\" is not host, host:port or [v6]:port (port 1-65535)",
          scheme.form);
    }
    options.addresses.push_back(std::move(address));
    if (comma == std::string_view::npos) break;
    hosts.remove_prefix(comma + 1);
  }
  if (scheme.topology == RedisTopology::kSingle && options.addresses.size() > 1) {
    return wrong(
        "it names several hosts; for Sentinels the scheme is redis-sentinel://, for nodes of a "
        "cluster redis-cluster://");
  }
  return {};
}

Status take_database(std::string_view text, const Scheme& scheme, RedisOptions& options) {
  if (text.empty()) return {};
  const char* const end = text.data() + text.size();
  int database = 0;
  const auto parsed = std::from_chars(text.data(), end, database);
  if (parsed.ec != std::errc{} || parsed.ptr != end || database < 0) {
    return wrong("\"" + base::printable(text) + "\" is not the number of a database", scheme.form);
  }
  if (database != 0 && scheme.topology == RedisTopology::kCluster) {
    return wrong("a cluster has only database 0", scheme.form);
  }
  options.database = database;
  return {};
}

Status take_path(std::string_view path, const Scheme& scheme, RedisOptions& options) {
  options.sentinel_master.clear();
  if (scheme.topology == RedisTopology::kSentinel) {
    const auto slash = path.find('/');
    auto master = unescaped(path.substr(0, slash));
    if (!master)
      return wrong("the master's name has a \"%\" that no two hexadecimal digits follow");
    if (master->empty()) return wrong("it does not name the master", scheme.form);
    options.sentinel_master = std::move(*master);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return take_database(path, scheme, options);
}

Status take_replica_reads(std::string_view value, RedisOptions& options) {
  for (const auto& [word, reads] : kReplicaReads) {
    if (value != word) continue;
    options.replica_reads = reads;
    return {};
  }
  return wrong("replica_reads must be one of never, when_master_fails, nearest");
}

Status take_replica_lag(std::string_view value, RedisOptions& options) {
  const auto length = base::parse_length(value);
  if (!length || *length < std::chrono::seconds{2} || *length > std::chrono::seconds{60}) {
    return wrong("replica_lag_max must be from 2s to 60s");
  }
  options.replica_lag_max = *length;
  return {};
}

// "name=value&name=value".
Status take_parameters(std::string_view text, const Scheme& scheme, RedisOptions& options) {
  if (scheme.topology == RedisTopology::kSingle) {
    return wrong(
        "parameters (after \"?\") are supported with redis-cluster:// and redis-sentinel:// only",
        scheme.form);
  }
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('&');
    const std::string_view parameter = rest.substr(0, end);
    const auto equals = parameter.find('=');
    const std::string_view name = parameter.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? "" : parameter.substr(equals + 1);
    Status taken =
        wrong("the parameter \"" + base::printable(name) + "\" is not known", scheme.form);
    if (name == "replica_reads") taken = take_replica_reads(value, options);
    if (name == "replica_lag_max") taken = take_replica_lag(value, options);
    if (!taken.ok()) return taken;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return {};
}

Status take_url(std::string_view rest, const Scheme& scheme, RedisOptions& options) {
  if (scheme.is_encrypted) options.tls.enabled = true;
  options.topology = scheme.topology;
  // A cluster's has no path that would come before the parameters.
  const bool ends_at_hosts = scheme.topology == RedisTopology::kCluster;
  const auto slash = rest.find_first_of(ends_at_hosts ? "/?" : "/");
  if (slash != std::string_view::npos && rest.find('@', slash) != std::string_view::npos) {
    return wrong("write \"/\" in the user or password as \"%2F\", and \"@\" in a name as \"%40\"");
  }
  std::string_view hosts = rest.substr(0, slash);
  std::string_view path =
      slash == std::string_view::npos ? "" : rest.substr(rest[slash] == '/' ? slash + 1 : slash);
  if (const auto at = hosts.rfind('@'); at != std::string_view::npos) {
    if (Status taken = take_account(hosts.substr(0, at), options); !taken.ok()) return taken;
    hosts.remove_prefix(at + 1);
  }
  if (hosts.find_first_of("?#") != std::string_view::npos ||
      path.find('#') != std::string_view::npos) {
    return wrong("parameters (after \"?\") are supported at its end only, and a \"#\" is not",
                 scheme.form);
  }
  if (const auto mark = path.find('?'); mark != std::string_view::npos) {
    if (Status taken = take_parameters(path.substr(mark + 1), scheme, options); !taken.ok()) {
      return taken;
    }
    path = path.substr(0, mark);
  }
  if (Status taken = take_hosts(hosts, scheme, options); !taken.ok()) return taken;
  return take_path(path, scheme, options);
}

}  // namespace

Result<RedisOptions> parse_redis_url(std::string_view text, RedisOptions options) {
  for (const Scheme& scheme : kSchemes) {
    if (!text.starts_with(scheme.prefix)) continue;
    const std::string_view rest = text.substr(scheme.prefix.size());
    if (Status taken = take_url(rest, scheme, options); !taken.ok()) return taken;
    return options;
  }
  if (text.find("://") != std::string_view::npos) {
    return wrong(
        "its scheme is not known: use redis://, rediss://, redis-sentinel://, "
        "rediss-sentinel://, redis-cluster:// or rediss-cluster://");
  }
  std::string address = text.starts_with('/') ? std::string(text) : with_port(text, kRedisPort);
  if (auto parsed = redis::parse_address(address); !parsed.ok()) return parsed.status();
  options.addresses = {std::move(address)};
  return options;
}

}  // namespace fcap
