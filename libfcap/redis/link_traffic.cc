// How a Link receives replies and sends requests.
#include <utility>

#include "redis/cluster_links.h"
#include "redis/link.h"

namespace fcap::redis {
namespace {

// After so many answers, requests that were submitted meanwhile are sent. The server then works on
// them while the next answers are processed, instead of taking turns with this thread.
constexpr std::size_t kAnswersBeforeSending = 16;

}  // namespace

void Link::on_event(bool readable, bool writable, TimePoint now) {
  if (state_ == State::kConnecting) {
    bool connected = false;
    if (const Status status = connection_.finish_connect(connected); !status.ok()) {
      return try_next_endpoint(now, status.text());
    }
    return connected ? greet(now) : watch_output();
  }
  if (readable && !receive(now)) return;
  if (writable) send(now);
}

// False when the connection was given up.
bool Link::receive(TimePoint now) {
  std::size_t answered_then = pipeline_.answered();
  pipeline_.note_progress(now);
  Status received = connection_.receive([&](const Reply& reply) {
    const bool expected = pipeline_.on_reply(reply);
    if (expected && pipeline_.answered() - answered_then >= kAnswersBeforeSending) {
      answered_then = pipeline_.answered();
      send_meanwhile(now);
    }
    return expected;
  });
  if (received.ok() && pipeline_.in_flight() == 0) received = connection_.nothing_left();
  if (!after_replies(now)) return false;
  if (!received.ok()) fail_connection(received.text(), now);
  return received.ok();
}

void Link::send_meanwhile(TimePoint now) {
  poller_.take_submitted(now);
  if (member_.links != nullptr) return member_.links->send_early();
  send_early();
}

// Called while receiving, when the connection must not be closed: a failure here is repeated in
// send().
void Link::send_early() {
  if (node_ != nullptr && !SendTiming::is_enough(pipeline_.waiting(), pipeline_.in_flight())) {
    return;
  }
  if (state_ != State::kReady || watching_output_ || renewal_ == Renewal::kDraining) return;
  pipeline_.write(connection_.output());
  if (connection_.has_output()) static_cast<void>(connection_.flush());
}

void Link::send_unless_held(TimePoint now) {
  held_ = node_ != nullptr && state_ == State::kReady && !connection_.has_output() &&
          send_timing_.holds_back(pipeline_.waiting(), pipeline_.in_flight(), now);
  if (!held_) send(now);
}

void Link::send_held(TimePoint now) {
  if (!std::exchange(held_, false)) return;
  send_timing_.sent();
  send(now);
}

// False when the connection was given up because of what the replies said.
bool Link::after_replies(TimePoint now) {
  if (const std::size_t answered = pipeline_.take_successes(); answered != 0) {
    breaker_.on_success(answered, now);
    update_gate();
  }
  if (const std::size_t refusals = pipeline_.take_refusals(); refusals != 0) {
    note_failures(refusals, now);
    if (node_ != nullptr) doubt_server();
  }
  if (const std::size_t errors = pipeline_.take_errors(); errors != 0) {
    const std::string text =
        server_name_ + ": the server answers with an error: " + pipeline_.last_error();
    shared_.note_server_errors(errors, text);
    shared_.log_thinned(LogLevel::kWarning, "redis " + text);
  }
  if (state_ == State::kGreeting && greeting_.outcome == OwnRequest::OwnOutcome::kAnswered) {
    greeting_.outcome = OwnRequest::OwnOutcome::kNone;
    on_greeted(now);
    if (state_ != State::kReady) return false;
  }
  check_probe(now);
  take_look(now);
  const bool demoted = std::exchange(demoted_, false);
  if ((pipeline_.take_readonly() || demoted) && state_ == State::kReady) {
    end_renewal();  // the next connection may lead there, too
    lose("the server is a read-only replica now", now);
    return false;
  }
  return true;
}

void Link::send(TimePoint now) {
  if (state_ != State::kReady && state_ != State::kGreeting) return;
  do {
    if (state_ == State::kReady && renewal_ != Renewal::kDraining) {
      pipeline_.write(connection_.output());
    }
    if (!connection_.has_output()) break;
    if (const Status sent = connection_.flush(); !sent.ok()) {
      // What the server said before it closed explains more than EPIPE does.
      if (receive(now)) fail_connection(sent.text(), now);
      return;
    }
  } while (!connection_.has_output() && state_ == State::kReady);
  watch_output();
}

void Link::watch_output() {
  if (connection_.has_output() == watching_output_) return;
  watching_output_ = connection_.has_output();
  poller_.watch(connection_.fd(), watching_output_, *this);
}

}  // namespace fcap::redis
