#include "redis/successor.h"

#include <utility>

namespace fcap::redis {

Successor::Successor(SharedState& shared, Poller& poller)
    : shared_(shared), poller_(poller), connection_(shared.options.value_bytes_max) {}

void Successor::begin(Endpoints endpoints, std::string server_name, TimePoint now) {
  endpoints_ = std::move(endpoints);
  server_name_ = std::move(server_name);
  next_ = 0;
  attempt_until_ = now + shared_.options.connect_timeout;
  try_next(now, "the name has no address");
}

// Divides the remaining time among the remaining addresses, as Link::try_next_endpoint() does.
void Successor::try_next(TimePoint now, std::string last_failure) {
  disconnect();
  // First: if the credentials change in between, the link is renewed once more.
  generation_ = shared_.credentials.generation();
  const auto tls = shared_.credentials.current().tls;
  while (next_ < endpoints_.size() && now < attempt_until_) {
    const auto left = static_cast<TimePoint::rep>(endpoints_.size() - next_);
    const Endpoint& endpoint = endpoints_[next_++];
    if (const Status opened = connection_.open(endpoint, tls, server_name_); !opened.ok()) {
      last_failure = opened.text();
      continue;
    }
    state_ = State::kConnecting;
    until_ = now + (attempt_until_ - now) / left;
    watching_output_ = true;
    poller_.watch(connection_.fd(), true, *this);
    return;
  }
  fail(std::move(last_failure));
}

void Successor::give_up(const std::string& why, TimePoint now) {
  // Requests wait for one that was ready, and must not wait for yet another connection.
  if (state_ == State::kReady) return fail(why);
  try_next(now, why);
}

void Successor::fail(std::string why) {
  disconnect();
  state_ = State::kFailed;
  failure_ = std::move(why);
}

void Successor::hand_over(Connection& to) {
  poller_.unwatch(connection_.fd());
  to.take_over(connection_);
  state_ = State::kNone;
}

void Successor::tick(TimePoint now) {
  if (now < until_) return;
  if (state_ == State::kConnecting) {
    try_next(now, connection_.overdue());
  } else if (state_ == State::kGreeting) {
    try_next(now, "no answer to the greeting");
  }
}

Successor::TimePoint Successor::next_time() const noexcept {
  const bool is_bounded = state_ == State::kConnecting || state_ == State::kGreeting;
  return is_bounded ? until_ : TimePoint::max();
}

void Successor::on_event(bool readable, bool writable, TimePoint now) {
  if (connection_.fd() < 0) return;
  if (state_ == State::kConnecting) {
    bool connected = false;
    if (const Status status = connection_.finish_connect(connected); !status.ok()) {
      return try_next(now, status.text());
    }
    return connected ? greet(now) : watch_output();
  }
  if (readable && !receive(now)) return;
  if (writable) send(now);
}

void Successor::close() {
  disconnect();
  state_ = State::kNone;
}

void Successor::disconnect() {
  if (connection_.fd() >= 0) poller_.unwatch(connection_.fd());
  connection_.close();
}

void Successor::greet(TimePoint now) {
  state_ = State::kGreeting;
  answers_ = 0;
  greeting_.clear();
  Link::ask_greeting(shared_, greeting_);
  connection_.output().append(greeting_.wire);
  send(now);
}

void Successor::send(TimePoint now) {
  if (const Status sent = connection_.flush(); !sent.ok()) {
    // What the server said before it closed explains more than EPIPE does.
    if (receive(now)) give_up(sent.text(), now);
    return;
  }
  watch_output();
}

// False when the connection was given up.
bool Successor::receive(TimePoint now) {
  Status received = connection_.receive([this](const Reply& reply) {
    if (answers_ == greeting_.command_count) return false;
    greeting_.on_reply(answers_++, reply);
    return true;
  });
  const bool is_complete = answers_ == greeting_.command_count;
  if (received.ok() && is_complete) received = connection_.nothing_left();
  if (!received.ok()) {
    const std::string& said = greeting_.first_error;
    const bool is_greeted = state_ == State::kReady;
    give_up(is_greeted || said.empty() ? received.text() : received.text() + ": " + said, now);
    return false;
  }
  if (!is_complete || state_ == State::kReady) return true;
  if (const std::string wrong = Link::wrong_with(shared_, greeting_); !wrong.empty()) {
    give_up(wrong, now);
    return false;
  }
  state_ = State::kReady;
  return true;
}

void Successor::watch_output() {
  if (connection_.has_output() == watching_output_) return;
  watching_output_ = connection_.has_output();
  poller_.watch(connection_.fd(), watching_output_, *this);
}

}  // namespace fcap::redis
