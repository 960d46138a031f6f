#include "cli/redis_target.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace fcap::cli {
namespace {

constexpr std::string_view kDefaultPort = ":6379";

Status wrong_redis(std::string why) {
  return Status::error(StatusCode::kInvalidArgument,
                       "--redis (FCAP_REDIS): " + std::move(why) +
                           "; write host:port, a socket's path, or "
                           "redis://[user[:password]@]host[:port][/database]");
}

/// "%40" is "@", as in every URL.
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

std::string with_port(std::string_view host) {
  std::string address(host);
  const bool is_bare_v6 = host.starts_with('[') && host.ends_with(']');
  if (is_bare_v6 || host.find(':') == std::string_view::npos) address += kDefaultPort;
  return address;
}

Status read_credentials(std::string_view text, RedisOptions& options) {
  const auto colon = text.find(':');
  const auto user = unescaped(text.substr(0, colon));
  if (!user) return wrong_redis("the user's name is not well escaped");
  if (!user->empty()) options.user = *user;
  if (colon == std::string_view::npos) return {};
  const char* variable = std::getenv("FCAP_REDIS");
  if (variable == nullptr || options.addresses.front() != variable) {
    return wrong_redis(
        "a password on the command line can be read by every user of the machine: use "
        "--redis-password-file, FCAP_REDIS_PASSWORD, or the URL in FCAP_REDIS");
  }
  const auto password = unescaped(text.substr(colon + 1));
  if (!password) return wrong_redis("the password is not well escaped");
  options.password = *password;
  return {};
}

Status read_url(std::string_view rest, RedisOptions& options) {
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return wrong_redis("a URL's parameters are not known");
  }
  const auto slash = rest.find('/');
  std::string_view host = rest.substr(0, slash);
  if (const auto at = host.rfind('@'); at != std::string_view::npos) {
    if (Status status = read_credentials(host.substr(0, at), options); !status.ok()) return status;
    host.remove_prefix(at + 1);
  }
  const std::string_view database =
      slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  if (!database.empty()) {
    const char* end = database.data() + database.size();
    const auto parsed = std::from_chars(database.data(), end, options.database);
    if (parsed.ec != std::errc{} || parsed.ptr != end || options.database < 0) {
      return wrong_redis("\"" + std::string(database) + "\" is not the number of a database");
    }
  }
  if (host.empty()) return wrong_redis("the URL names no host");
  options.addresses = {with_port(host)};
  return {};
}

}  // namespace

Result<RedisOptions> redis_target(const AccessSettings& access, std::string password) {
  RedisOptions options;
  options.addresses = {access.redis};
  options.user = access.redis_user;
  options.password = std::move(password);
  options.database = access.redis_database;
  options.value_bytes_max = std::size_t{64} << 20U;  // whoever asks by hand wants to see it
  const std::string_view text = access.redis;
  constexpr std::string_view kScheme = "redis://";
  if (text.starts_with("rediss://")) return wrong_redis("TLS is not built yet");
  if (text.starts_with(kScheme)) {
    Status status = read_url(text.substr(kScheme.size()), options);
    if (!status.ok()) return status;
  } else if (!text.empty() && !text.starts_with('/')) {
    options.addresses = {with_port(text)};
  }
  return options;
}

}  // namespace fcap::cli
