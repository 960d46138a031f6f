#include "redis/address.h"

#include <algorithm>
#include <charconv>

#include <netdb.h>
#include <sys/un.h>

#include "base/outside_text.h"

namespace fcap::redis {
namespace {

Status bad_address(std::string_view text, std::string_view why) {
  return Status::error(StatusCode::kInvalidArgument,
                       "redis addresses: \"" + base::printable(text) + "\" " + std::string(why));
}

bool parse_port(std::string_view digits, std::uint16_t& port) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc{} && end == digits.data() + digits.size() && port != 0;
}

}  // namespace

bool is_host(std::string_view text) noexcept {
  constexpr std::size_t kBytesMax = 255;
  return !text.empty() && text.size() <= kBytesMax && std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7F;
  });
}

Result<Address> parse_address(std::string_view text) {
  Address address;
  address.text = std::string(text);
  if (text.starts_with('/')) {
    if (text.size() >= sizeof(sockaddr_un::sun_path)) {
      return bad_address(text, "is too long for a unix socket's path");
    }
    if (base::printable(text) != text) return bad_address(text, "has a control character");
    address.path = std::string(text);
    return address;
  }
  // The text is not shown, because it may hold a password.
  if (text.find('@') != std::string_view::npos) {
    return Status::error(StatusCode::kInvalidArgument,
                         "redis addresses: an address holds no user and password (\"@\"): write "
                         "redis://user:password@host:port");
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || !parse_port(text.substr(colon + 1), address.port)) {
    return bad_address(text, "is not host:port, [v6]:port or /path/to/redis.sock (port 1-65535)");
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text, "is an IPv6 address without brackets: write [address]:port");
  }
  // A "%" names the interface of an IPv6 address, and is in no name.
  const bool has_zone = host.find(':') != std::string_view::npos;
  if (!is_host(host) || (!has_zone && host.find('%') != std::string_view::npos)) {
    return bad_address(text, "has no host, or one with a blank, a \"%\" or a control character");
  }
  address.host = std::string(host);
  return address;
}

std::string Endpoint::text() const {
  if (family() == AF_UNIX) {
    return reinterpret_cast<const sockaddr_un*>(&storage)->sun_path;
  }
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length_bytes, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  if (family() == AF_INET6) return "[" + std::string(host) + "]:" + port;
  return std::string(host) + ":" + port;
}

}  // namespace fcap::redis
