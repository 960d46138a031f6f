#include "redis/sentinel_session.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>

#include "redis/client.h"
#include "redis/replica_list.h"

namespace fcap::redis {
namespace {

using std::chrono::milliseconds;

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
    return unavailable(std::string(reply.text) + hint_for(reply.text));
  }
  if (reply.kind == Reply::Kind::kNil) {
    return unavailable("it knows no master \"" + std::string(master) +
                       "\" (option sentinel_master)");
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

Status SentinelSession::open(const Endpoints& endpoints, const std::string& host, TimePoint until) {
  Status last = unavailable("the name has no address");
  auto left = static_cast<TimePoint::rep>(endpoints.size());
  for (const Endpoint& endpoint : endpoints) {
    // The first may not answer: the remaining time is divided among the remaining ones.
    const TimePoint now = std::chrono::steady_clock::now();
    last = connect(endpoint, host, now + (until - now) / left--);
    if (last.ok()) break;
    close();
  }
  greeted_ = false;
  return last;
}

Status SentinelSession::connect(const Endpoint& endpoint, const std::string& host,
                                TimePoint until) {
  if (Status opened = connection_.open(endpoint, credentials_().tls, host); !opened.ok())
    return opened;
  bool output = true;
  for (bool connected = false; !connected; output = connection_.has_output()) {
    if (!wait(output, until).ok()) return unavailable(connection_.overdue());
    if (Status status = connection_.finish_connect(connected); !status.ok()) return status;
  }
  return {};
}

Result<Address> SentinelSession::ask_master(TimePoint until) {
  std::size_t replies = 1;
  std::string& output = connection_.output();
  const std::string password =
      std::exchange(greeted_, true) ? std::string() : credentials_().sentinel_password;
  if (!password.empty()) {
    ++replies;
    if (options_.sentinel_user.empty()) {
      append_command(output, {"AUTH", password});
    } else {
      append_command(output, {"AUTH", options_.sentinel_user, password});
    }
  }
  append_command(output, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options_.sentinel_master});
  error_.clear();
  std::optional<Result<Address>> master;
  Status answered = exchange(until, replies, [&](const Reply& reply) {
    master = read_master_address(reply, options_.sentinel_master);
  });
  if (answered.ok() && !error_.empty()) answered = unavailable(error_ + hint_for(error_));
  if (!answered.ok()) {
    close();
    return answered;
  }
  return *master;
}

Result<std::vector<Address>> SentinelSession::ask_replicas(TimePoint until) {
  append_command(connection_.output(), {"SENTINEL", "REPLICAS", options_.sentinel_master});
  std::optional<Result<std::vector<Address>>> replicas;
  const Status answered =
      exchange(until, 1, [&](const Reply& reply) { replicas = read_replica_addresses(reply); });
  if (!answered.ok()) {
    close();
    return answered;
  }
  return *std::move(replicas);
}

Status SentinelSession::exchange(TimePoint until, std::size_t replies_expected,
                                 const std::function<void(const Reply&)>& take_last) {
  std::size_t left = replies_expected;
  while (left != 0) {
    if (Status sent = connection_.flush(); !sent.ok()) return sent;
    if (Status waited = wait(connection_.has_output(), until); !waited.ok()) return waited;
    Status received = connection_.receive([&](const Reply& reply) {
      if (left == 0) return false;
      if (--left == 0) {
        take_last(reply);
      } else if (reply.kind == Reply::Kind::kError && error_.empty()) {
        error_.assign(reply.text);
      }
      return true;
    });
    if (!received.ok()) return received;
  }
  return {};
}

Status SentinelSession::wait(bool output, TimePoint until) {
  pollfd watched[] = {{connection_.fd(), static_cast<short>(output ? POLLIN | POLLOUT : POLLIN), 0},
                      {stop_fd_, POLLIN, 0}};
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    const auto left_ms = std::clamp<milliseconds::rep>(left, 0, 60'000);
    const int ready = ::poll(watched, 2, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return unavailable("poll: " + std::generic_category().message(errno));
    if (watched[1].revents != 0) return unavailable("this process is stopping");
    if (watched[0].revents != 0) return {};
    return unavailable("it does not answer in time");
  }
}

}  // namespace fcap::redis
