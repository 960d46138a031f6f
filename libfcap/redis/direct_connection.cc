#include "redis/direct_connection.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "redis/command.h"
#include "redis/store_operation.h"

namespace fcap::redis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kErrorBytesMax = 256;

// False: not by the deadline.
bool wait_readable(int fd, Clock::time_point deadline) noexcept {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  for (;;) {
    const std::chrono::nanoseconds left = deadline - Clock::now();
    if (left.count() <= 0) return false;
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = static_cast<time_t>(whole.count()),
                           .tv_nsec = static_cast<long>((left - whole).count())};
    const int ready = ::ppoll(&polled, 1, &timeout, nullptr);
    if (ready == 0) return false;
    // Reading says more of another error.
    if (ready > 0 || errno != EINTR) return true;
  }
}

}  // namespace

DirectConnection::DirectConnection(SharedState& shared, Poller& poller, const Address& address,
                                   base::Backoff backoff)
    : shared_(shared),
      poller_(poller),
      address_(address),
      backoff_(std::move(backoff)),
      connection_(shared.options.value_bytes_max) {}

// --- On a caller's thread.

bool DirectConnection::try_take() noexcept {
  // A look first, so that callers who find it taken leave its cache line to whoever has it.
  if (owner_.load(std::memory_order_relaxed) != Owner::kNobody) return false;
  Owner expected = Owner::kNobody;
  return owner_.compare_exchange_strong(expected, Owner::kCaller);
}

bool DirectConnection::read(std::string_view key, TimePoint deadline,
                            StoreCompletion& done) noexcept {
  // Loaded after the connection was taken: a stop that this does not see finds it taken, and
  // interrupt() ends the wait. In the other order a caller could wait out its deadline while the
  // client is being destroyed.
  if (shared_.direct_stopping.load() || Clock::now() >= deadline) {
    give_back(true);
    return false;
  }
  const int error = errno;
  DirectOutcome outcome = DirectOutcome::kNone;
  try {
    exchange(key, deadline, done, outcome);
  } catch (...) {  // no memory
    returned_.broken = true;
  }
  if (outcome == DirectOutcome::kAnswered) {
    reads_.store(reads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  } else if (outcome == DirectOutcome::kLate) {
    shared_.timeouts.fetch_add(1, std::memory_order_relaxed);
    returned_.late = true;
  }
  const bool answered =
      outcome == DirectOutcome::kAnswered || outcome == DirectOutcome::kRedirected;
  give_back(answered && !returned_.broken && returned_.error.empty());
  if (outcome == DirectOutcome::kLate) done.complete({.code = StoreCode::kTimeout});
  errno = error;
  return outcome == DirectOutcome::kAnswered || outcome == DirectOutcome::kLate;
}

// Sets `outcome` as soon as it is certain, because memory may be missing later.
void DirectConnection::exchange(std::string_view key, TimePoint deadline, StoreCompletion& done,
                                DirectOutcome& outcome) {
  bool asked = false;
  const auto on_reply = [&](const Reply& reply) {
    if (!asked || outcome != DirectOutcome::kNone) return false;
    if (shared_.cluster != nullptr && is_redirect(reply)) {
      outcome = DirectOutcome::kRedirected;
      return true;
    }
    if (!complete_get(reply, done)) {
      returned_.failed = true;
      return false;  // the caller asks again by the I/O thread, which reports it
    }
    outcome = DirectOutcome::kAnswered;
    if (reply.kind != Reply::Kind::kError) return true;
    returned_.failed = is_refusal(reply);
    returned_.error.assign(reply.text.substr(0, kErrorBytesMax));
    return true;
  };
  returned_.broken = true;
  // What has come unasked must not be taken for the answer.
  if (!connection_.receive(on_reply).ok() || !connection_.nothing_left().ok()) return;
  append_command(connection_.output(), {"GET", key});
  asked = true;
  if (!connection_.flush().ok() || connection_.has_output()) return;
  const TimePoint asked_at = Clock::now();
  bool in_time = true;
  bool received = true;
  while (received && in_time && outcome == DirectOutcome::kNone) {
    in_time = wait_readable(connection_.fd(), deadline);
    // We receive once after the deadline, too: the answer may have come in time without this thread
    // running.
    received = connection_.receive(on_reply).ok();
  }
  if (received && outcome == DirectOutcome::kNone) {
    outcome = DirectOutcome::kLate;
    // It is the server's failure only if it had enough time: this thread may have asked late.
    returned_.failed = deadline - asked_at >= Pipeline::kFairTime;
  }
  returned_.broken = !received;
}

void DirectConnection::give_back(bool as_it_was) noexcept {
  if (as_it_was) {
    Owner expected = Owner::kCaller;
    if (owner_.compare_exchange_strong(expected, Owner::kNobody)) return;
  }
  owner_.store(Owner::kReturned, std::memory_order_release);
  poller_.wake();
}

// --- On the I/O thread.

std::size_t DirectConnection::tick(TimePoint now) {
  std::size_t failures = 0;
  if (state_ == State::kLent && owner_.load(std::memory_order_acquire) == Owner::kReturned) {
    failures = take_returned(now);
  }
  if (now < until_ || state_ == State::kLent) return failures;
  switch (state_) {
    case State::kClosed:
      if (endpoint_) open(now);
      break;
    case State::kSwallowing:
      close(now);
      break;
    default:
      fail(state_ == State::kConnecting ? connection_.overdue() : "no answer to the greeting", now);
      break;
  }
  return failures;
}

DirectConnection::TimePoint DirectConnection::next_time() const noexcept {
  if (state_ == State::kLent || (state_ == State::kClosed && !endpoint_)) return TimePoint::max();
  return until_;
}

void DirectConnection::retire(TimePoint now) {
  endpoint_.reset();
  reclaim(now);
}

void DirectConnection::reclaim(TimePoint now) {
  if (state_ == State::kLent && !take_back()) {
    reclaimed_ = true;
  } else {
    close(now);
  }
}

// False: a caller has it, and will return it, or has done so.
bool DirectConnection::take_back() noexcept {
  Owner seen = owner_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen != Owner::kNobody && seen != Owner::kCaller) return false;
    const Owner next = seen == Owner::kNobody ? Owner::kIoThread : Owner::kReclaimed;
    if (owner_.compare_exchange_weak(seen, next)) return next == Owner::kIoThread;
  }
}

void DirectConnection::interrupt() noexcept {
  if (state_ == State::kLent) ::shutdown(connection_.fd(), SHUT_RDWR);
}

std::size_t DirectConnection::take_returned(TimePoint now) {
  owner_.store(Owner::kIoThread, std::memory_order_relaxed);
  const Returned returned = std::exchange(returned_, {});
  if (!returned.error.empty()) {
    const std::string text =
        address_.text + ": the server answers with an error: " + returned.error;
    shared_.note_server_errors(1, text);
    shared_.log_thinned(LogLevel::kWarning, "redis " + text);
  }
  if (std::exchange(reclaimed_, false) || returned.broken) {
    close(now);
  } else if (returned.late) {
    state_ = State::kSwallowing;
    until_ = now + shared_.options.stale_reset;
    poller_.watch(connection_.fd(), false, *this);
  } else {
    lend();
  }
  return returned.failed ? 1 : 0;
}

void DirectConnection::on_event(bool readable, bool writable, TimePoint now) {
  switch (state_) {
    case State::kConnecting:
      return go_on_connecting(now);
    case State::kGreeting:
      if (writable) flush(now);
      if (readable && state_ == State::kGreeting) take_greeting(now);
      return;
    case State::kSwallowing:
      if (readable) swallow(now);
      return;
    case State::kLent:  // it has ended
      return reclaim(now);
    case State::kClosed:
      return;
  }
}

void DirectConnection::open(TimePoint now) {
  const Status opened =
      connection_.open(*endpoint_, shared_.credentials.current().tls, server_name_);
  if (!opened.ok()) {
    return fail(opened.text(), now);
  }
  state_ = State::kConnecting;
  until_ = now + shared_.options.connect_timeout;
  poller_.watch(connection_.fd(), true, *this);
}

void DirectConnection::go_on_connecting(TimePoint now) {
  bool connected = false;
  if (const Status went_on = connection_.finish_connect(connected); !went_on.ok()) {
    return fail(went_on.text(), now);
  }
  if (connected) return greet(now);
  poller_.watch(connection_.fd(), connection_.has_output(), *this);
}

void DirectConnection::greet(TimePoint now) {
  state_ = State::kGreeting;
  greeting_.clear();
  greeting_replies_ = 0;
  Link::ask_greeting(shared_, greeting_);
  connection_.output() = greeting_.wire;
  flush(now);
}

void DirectConnection::flush(TimePoint now) {
  if (const Status sent = connection_.flush(); !sent.ok()) return fail(sent.text(), now);
  poller_.watch(connection_.fd(), connection_.has_output(), *this);
}

void DirectConnection::take_greeting(TimePoint now) {
  const Status received = connection_.receive([this](const Reply& reply) {
    if (greeting_replies_ == greeting_.command_count) return false;
    greeting_.on_reply(greeting_replies_++, reply);
    return true;
  });
  if (!received.ok()) {
    const std::string& said = greeting_.first_error;
    return fail(said.empty() ? received.text() : received.text() + ": " + said, now);
  }
  if (greeting_replies_ < greeting_.command_count) return;
  if (const std::string wrong = Link::wrong_with(shared_, greeting_); !wrong.empty())
    return fail(wrong, now);
  lent_since_ = now;
  lend();
}

void DirectConnection::lend() {
  state_ = State::kLent;
  poller_.watch_end(connection_.fd(), *this);
  owner_.store(Owner::kNobody, std::memory_order_release);
}

void DirectConnection::swallow(TimePoint now) {
  bool came = false;
  const Status received =
      connection_.receive([&](const Reply& /*reply*/) { return !std::exchange(came, true); });
  if (!received.ok()) return close(now);
  if (came) lend();
}

void DirectConnection::close(TimePoint now) {
  if (state_ == State::kClosed) return;
  if (state_ == State::kLent && now - lent_since_ >= shared_.options.reconnect_backoff_max) {
    backoff_.reset();
  }
  poller_.unwatch(connection_.fd());
  connection_.close();
  state_ = State::kClosed;
  until_ = now + backoff_.next();
}

// Notes that a direct connection could not be made. It is not logged: the link's own connection
// works, so checks only take longer.
void DirectConnection::fail(const std::string& why, TimePoint now) {
  if (state_ == State::kClosed) {
    until_ = now + backoff_.next();
  } else {
    close(now);
  }
  const std::string text = address_.text + ": cannot make a direct connection: " + why;
  shared_.note_error(text);
  shared_.log_thinned(LogLevel::kWarning, "redis " + text);
}

}  // namespace fcap::redis
