#include "redis/node_session.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <poll.h>

#include "redis/client.h"

namespace fcap::redis {
namespace {

using std::chrono::milliseconds;

Status unreachable(std::string text) {
  return Status::error(StatusCode::kUnavailable, std::move(text), true);
}

}  // namespace

Status NodeSession::open(const Endpoints& endpoints, const std::string& host, TimePoint until) {
  Status last = unreachable("the name has no address");
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

Status NodeSession::connect(const Endpoint& endpoint, const std::string& host, TimePoint until) {
  if (Status opened = connection_.open(endpoint, account_().tls, host); !opened.ok()) return opened;
  bool output = true;
  for (bool connected = false; !connected; output = connection_.has_output()) {
    if (!wait(output, until).ok()) return unreachable(connection_.overdue());
    if (Status status = connection_.finish_connect(connected); !status.ok()) return status;
  }
  return {};
}

Status NodeSession::ask(std::initializer_list<Command> commands, TimePoint until,
                        const Take& take) {
  std::string& output = connection_.output();
  const Account account = std::exchange(greeted_, true) ? Account{} : account_();
  const std::size_t greetings = account.password.empty() ? 0 : 1;
  if (greetings != 0 && account.user.empty()) {
    append_command(output, {"AUTH", account.password});
  } else if (greetings != 0) {
    append_command(output, {"AUTH", account.user, account.password});
  }
  for (const Command& command : commands) append_command(output, command);
  Status refused;
  std::size_t replies = 0;
  Status answered = exchange(until, greetings + commands.size(), [&](const Reply& reply) {
    const std::size_t index = replies++;
    if (index >= greetings) return take(index - greetings, reply);
    if (reply.kind != Reply::Kind::kError) return;
    refused = Status::error(StatusCode::kRefused, std::string(reply.text), true);
  });
  if (answered.ok()) answered = refused;
  if (!answered.ok()) close();
  return answered;
}

Status NodeSession::exchange(TimePoint until, std::size_t replies_expected,
                             const std::function<void(const Reply&)>& take) {
  std::size_t left = replies_expected;
  while (left != 0) {
    if (Status sent = connection_.flush(); !sent.ok()) return sent;
    if (Status waited = wait(connection_.has_output(), until); !waited.ok()) return waited;
    Status received = connection_.receive([&](const Reply& reply) {
      if (left == 0) return false;
      --left;
      take(reply);
      return true;
    });
    if (!received.ok()) return received;
  }
  return {};
}

Status NodeSession::wait(bool output, TimePoint until) {
  pollfd watched[] = {{connection_.fd(), static_cast<short>(output ? POLLIN | POLLOUT : POLLIN), 0},
                      {stop_fd_, POLLIN, 0}};
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    const auto left_ms = std::clamp<milliseconds::rep>(left, 0, 60'000);
    const int ready = ::poll(watched, 2, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return unreachable("poll: " + std::generic_category().message(errno));
    if (watched[1].revents != 0) return unreachable("this process is stopping");
    if (watched[0].revents != 0) return {};
    return unreachable("it does not answer in time");
  }
}

}  // namespace fcap::redis
