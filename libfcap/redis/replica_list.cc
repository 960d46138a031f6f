#include "redis/replica_list.h"

#include <string_view>

namespace fcap::redis {
namespace {

Status no_list(std::string text) {
  return Status::error(StatusCode::kUnavailable, std::move(text), true);
}

// Looks a name up in name, value, name, value…; empty: not there.
std::string_view field(const Reply& fields, std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2) {
    if (fields.elements[i].text == name) return fields.elements[i + 1].text;
  }
  return {};
}

bool is_down(std::string_view flags) noexcept {
  return flags.find("down") != std::string_view::npos ||
         flags.find("disconnected") != std::string_view::npos;
}

}  // namespace

Result<std::vector<Address>> read_replica_addresses(const Reply& reply) {
  if (reply.kind == Reply::Kind::kError) {
    std::string text = "SENTINEL REPLICAS: " + std::string(reply.text);
    if (reply.text.starts_with("NOPERM")) {
      text +=
          " (allow the command sentinel|replicas to the account of the option sentinel_user, which "
          "the option replica_reads needs)";
    }
    return no_list(std::move(text));
  }
  if (reply.kind != Reply::Kind::kArray) {
    return no_list("it does not answer SENTINEL REPLICAS as a Sentinel does");
  }
  std::vector<Address> addresses;
  for (const Reply& replica : reply.elements) {
    if (is_down(field(replica, "flags"))) continue;
    const std::string host(field(replica, "ip"));
    const bool is_v6 = host.find(':') != std::string::npos;
    auto address = parse_address((is_v6 ? "[" + host + "]" : host) + ":" +
                                 std::string(field(replica, "port")));
    // One that has not said yet where it is.
    if (!address.ok() || !address.value().path.empty()) continue;
    addresses.push_back(std::move(address).value());
  }
  return addresses;
}

}  // namespace fcap::redis
