#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "redis/connection.h"
#include "redis/link.h"

namespace fcap::redis {

/// The connection that is to replace a link's. It is made and greeted while the link still uses the
/// one that it has. So a renewal does not make requests wait for a handshake, and a server that
/// cannot be reached costs no connection that works.
///
/// Thread safety: all functions on the I/O thread, except close_descriptor().
class Successor final : public EventHandler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Successor(SharedState& shared, Poller& poller);

  /// Connects to the first of `endpoints` that takes a connection and is fit for the link.
  void begin(Endpoints endpoints, std::string server_name, TimePoint now);
  /// Whether it has been greeted, and can replace the link's connection. It may fail even then.
  [[nodiscard]] bool is_ready() const noexcept { return state_ == State::kReady; }
  [[nodiscard]] bool has_failed() const noexcept { return state_ == State::kFailed; }
  /// Why; of has_failed().
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  // --- Of is_ready(), and after hand_over().

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoints_[next_ - 1]; }
  [[nodiscard]] const ServerFacts& facts() const noexcept { return greeting_.facts; }
  /// The generation of the credentials that it was made with.
  [[nodiscard]] std::uint64_t credentials_generation() const noexcept { return generation_; }

  /// Gives the connection away, which replaces what `to` was. The caller watches it from then on.
  void hand_over(Connection& to);

  /// Does what is due.
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_time() const noexcept;
  void on_event(bool readable, bool writable, TimePoint now) override;
  /// Gives up what has been begun, if anything.
  void close();
  /// For a forked child.
  void close_descriptor() noexcept { connection_.abandon(); }

 private:
  enum class State : std::uint8_t { kNone, kConnecting, kGreeting, kReady, kFailed };

  void try_next(TimePoint now, std::string last_failure);
  void give_up(const std::string& why, TimePoint now);
  void fail(std::string why);
  void greet(TimePoint now);
  void send(TimePoint now);
  [[nodiscard]] bool receive(TimePoint now);
  void watch_output();
  void disconnect();

  SharedState& shared_;
  Poller& poller_;
  State state_ = State::kNone;
  TimePoint until_;  // of connecting and greeting: the end
  TimePoint attempt_until_;
  Endpoints endpoints_;
  std::size_t next_ = 0;
  std::string server_name_;  // whose certificate is expected
  std::string failure_;
  std::uint64_t generation_ = 0;
  bool watching_output_ = false;
  std::uint32_t answers_ = 0;  // to the greeting
  Connection connection_;
  Link::OwnRequest greeting_;
};

}  // namespace fcap::redis
