#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include <fcap/status.h>

namespace fcap::redis {

/// Where a server listens, as written in the options.
struct Address {
  std::string text;  ///< as given, for messages
  std::string host;  ///< a name or a number; empty for a unix socket
  std::uint16_t port = 0;
  std::string path;  ///< the path of a unix socket
};

/// Whether this can be a node's name or number.
[[nodiscard]] bool is_host(std::string_view text) noexcept;

/// Reads "host:port", "[v6]:port" or "/path/to/redis.sock".
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// An address as connect() takes it.
struct Endpoint {
  sockaddr_storage storage = {};
  socklen_t length_bytes = 0;

  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
  /// "127.0.0.1:6379", "[::1]:6379" or the path.
  [[nodiscard]] std::string text() const;
};

}  // namespace fcap::redis
