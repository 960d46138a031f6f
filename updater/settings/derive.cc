#include "updater/settings/derive.h"

#include <memory>
#include <string_view>
#include <utility>

#include <libpq-fe.h>

namespace fcap::updater {
namespace {

void append_option(std::string& conninfo, std::string_view keyword, std::string_view value) {
  if (!conninfo.empty()) conninfo += ' ';
  conninfo.append(keyword).append("='");
  for (const char c : value) {
    if (c == '\'' || c == '\\') conninfo += '\\';
    conninfo += c;
  }
  conninfo += '\'';
}

using ParsedConninfo = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

ParsedConninfo parse_conninfo(const std::string& conninfo) {
  return {PQconninfoParse(conninfo.c_str(), nullptr), PQconninfoFree};
}

}  // namespace

RedisOptions redis_options(const Settings& settings, LogCallback log) {
  RedisOptions options;
  options.addresses = settings.redis.addresses;
  options.user = settings.redis.user;
  options.password = settings.redis.password;
  options.database = static_cast<int>(settings.redis.database);
  options.connect_timeout = settings.redis.connect_timeout;
  // Compaction mends records that have grown beyond what a check would read.
  options.value_bytes_max = std::size_t{64} << 20U;
  options.io_threads = static_cast<std::size_t>(settings.redis.io_threads);
  options.log = std::move(log);
  // A slow Redis is not a dead one: a connection that is closed takes with it what Redis has done
  // and not yet answered, and everything behind the marks is read again.
  options.stale_reset = std::chrono::seconds{5};
  return options;
}

RuleSourceOptions rule_source_options(const Settings& settings) {
  RuleSourceOptions options;
  options.postgres = conninfo_with_password(settings.postgres);
  options.snapshot_file = settings.rules.snapshot_file;
  options.poll_interval = settings.rules.poll_interval;
  options.listen = settings.rules.listen;
  options.shrink_refused_below = settings.rules.shrink_refused_below;
  options.accept_any_shrink = settings.rules.accept_any_shrink;
  return options;
}

bool has_rule_source(const Settings& settings) noexcept {
  return !settings.postgres.conninfo.empty() || !settings.rules.snapshot_file.empty();
}

std::string conninfo_with_password(const PostgresSettings& postgres) {
  if (postgres.conninfo.empty() || postgres.password.empty()) return postgres.conninfo;
  // Rebuilt from its parts, since it may be a URI, which nothing can be put behind.
  const ParsedConninfo options = parse_conninfo(postgres.conninfo);
  if (options == nullptr) return postgres.conninfo;
  std::string conninfo;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view keyword = option->keyword;
    if (option->val != nullptr && keyword != "password") {
      append_option(conninfo, keyword, option->val);
    }
  }
  append_option(conninfo, "password", postgres.password);
  return conninfo;
}

std::string masked_conninfo(const std::string& conninfo) {
  const ParsedConninfo options = parse_conninfo(conninfo);
  if (options == nullptr) return {};
  bool holds_secret = false;
  std::string masked;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    const bool secret = keyword.ends_with("password");
    holds_secret |= secret;
    append_option(masked, keyword, secret ? "(set)" : option->val);
  }
  return holds_secret ? masked : conninfo;
}

}  // namespace fcap::updater
