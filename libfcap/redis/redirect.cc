#include "redis/redirect.h"

#include <charconv>

#include "redis/cluster_shape.h"

namespace fcap::redis {
namespace {

bool parse_number(std::string_view digits, std::uint16_t& number) noexcept {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size();
}

}  // namespace

std::optional<Redirect> read_redirect(std::string_view error) {
  Redirect redirect;
  if (error.starts_with("MOVED ")) {
    error.remove_prefix(6);
  } else if (error.starts_with("ASK ")) {
    redirect.kind = Redirect::Kind::kAsk;
    error.remove_prefix(4);
  } else {
    return std::nullopt;
  }
  const auto space = error.find(' ');
  const auto colon = error.rfind(':');  // an IPv6 address has more of them
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space ||
      !parse_number(error.substr(0, space), redirect.slot) || redirect.slot >= kSlotCount ||
      !parse_number(error.substr(colon + 1), redirect.port) || redirect.port == 0) {
    return std::nullopt;
  }
  std::string_view host = error.substr(space + 1, colon - space - 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  // Nodes whose host nobody has told them write nothing or "?".
  if (host.empty() || host == "?") return redirect;
  if (!is_host(host)) return std::nullopt;
  redirect.host = std::string(host);
  return redirect;
}

Address address_of(const Redirect& redirect, const Address& answered) {
  return node_address(redirect.host.empty() ? answered.host : redirect.host, redirect.port);
}

}  // namespace fcap::redis
