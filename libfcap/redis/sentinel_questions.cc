#include "redis/sentinel_questions.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "redis/replica_list.h"

namespace fcap::redis {
namespace {

Status unavailable(std::string text) {
  return Status::error(StatusCode::kUnavailable, std::move(text), true);
}

std::string hint_for(std::string_view error) {
  if (error.starts_with("NOAUTH")) return " (set the option sentinel_password)";
  if (error.starts_with("WRONGPASS") || error.starts_with("NOPERM") ||
      error.starts_with("ERR AUTH")) {
    return " (options sentinel_user, sentinel_password)";
  }
  if (error.find("unknown command") != std::string_view::npos) {
    return " (this is no Sentinel: the option addresses must name Sentinels when topology is "
           "sentinel)";
  }
  return {};
}

}  // namespace

Result<Address> read_master_address(const Reply& reply, std::string_view master) {
  if (reply.kind == Reply::Kind::kError) {
    if (reply.text.empty()) return unavailable("it answers with an error that says nothing");
    return unavailable(std::string(reply.text) + hint_for(reply.text));
  }
  if (reply.kind == Reply::Kind::kNil) {
    return Status::error(
        StatusCode::kNotFound,
        "it knows no master \"" + std::string(master) + "\" (option sentinel_master)", true);
  }
  if (reply.kind != Reply::Kind::kArray || reply.elements.size() != 2) {
    return unavailable("it does not answer SENTINEL GET-MASTER-ADDR-BY-NAME as a Sentinel does");
  }
  const std::string host(reply.elements[0].text);
  const bool is_v6 = host.find(':') != std::string::npos;
  auto address =
      parse_address((is_v6 ? "[" + host + "]" : host) + ":" + std::string(reply.elements[1].text));
  if (address.ok() && address.value().path.empty()) return address;
  return unavailable("it names a master \"" + host + ":" + std::string(reply.elements[1].text) +
                     "\", which is no address");
}

std::optional<std::uint64_t> read_config_epoch(const Reply& reply) noexcept {
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    if (reply.elements[i].text != "config-epoch") continue;
    const std::string_view text = reply.elements[i + 1].text;
    const char* const end = text.data() + text.size();
    std::uint64_t epoch = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, epoch);
    if (error == std::errc() && stop == end) return epoch;
  }
  return std::nullopt;
}

Result<NamedMaster> ask_master(NodeSession& sentinel, std::string_view master,
                               NodeSession::TimePoint until) {
  std::optional<Result<Address>> address;
  std::optional<std::uint64_t> epoch;
  // In this order, so that an address is never told with an epoch that is newer than it.
  const Status answered = sentinel.ask(
      {{"SENTINEL", "MASTER", master}, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master}}, until,
      [&](std::size_t command, const Reply& reply) {
        if (command == 0) {
          epoch = read_config_epoch(reply);
        } else {
          address = read_master_address(reply, master);
        }
      });
  if (answered.ok()) {
    if (!address->ok()) return address->status();
    return NamedMaster{std::move(*address).value(), epoch};
  }
  if (answered.code() != StatusCode::kRefused) return answered;
  return unavailable(answered.text() + hint_for(answered.text()));
}

Result<std::vector<Address>> ask_replicas(NodeSession& sentinel, std::string_view master,
                                          NodeSession::TimePoint until) {
  std::optional<Result<std::vector<Address>>> named;
  const Status answered =
      sentinel.ask({{"SENTINEL", "REPLICAS", master}}, until,
                   [&](std::size_t, const Reply& reply) { named = read_replica_addresses(reply); });
  if (!answered.ok()) return answered;
  return *std::move(named);
}

}  // namespace fcap::redis
