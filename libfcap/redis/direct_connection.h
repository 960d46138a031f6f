#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/store.h>

#include "base/backoff.h"
#include "redis/link.h"

namespace fcap::redis {

/// A connection for one caller at a time, who sends a GET and waits for its reply on its own
/// thread. The I/O thread makes the connection, watches it while it is idle, and gets it back when
/// something is wrong with it: after an error, and to swallow a reply that came too late for its
/// caller. Whom it belongs to is one atomic word.
///
/// Thread safety: try_take(), read() and reads() from any thread; all else on the I/O thread.
class alignas(64) DirectConnection final : public EventHandler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  DirectConnection(SharedState& shared, Poller& poller, const Address& address,
                   base::Backoff backoff);

  // --- For callers.

  /// Whether it was idle and is the caller's now, until read() returns.
  [[nodiscard]] bool try_take() noexcept;
  /// As DirectReads::read(), on what was taken.
  [[nodiscard]] bool read(std::string_view key, TimePoint deadline, StoreCompletion& done) noexcept;
  /// How many replies it has given in time.
  [[nodiscard]] std::uint64_t reads() const noexcept {
    return reads_.load(std::memory_order_relaxed);
  }

  // --- For the I/O thread.

  /// Connects there, as soon as it is closed and its backoff is over.
  void aim_at(const Endpoint& endpoint, const std::string& server_name) {
    endpoint_ = endpoint;
    server_name_ = server_name;
  }
  /// Closes it, as soon as its caller is done, and makes no other.
  void retire(TimePoint now);
  /// Wakes up a caller who has it. After retire().
  void interrupt() noexcept;
  /// Closes it at the end, when no caller has it any more, even if tick() has not yet seen the last
  /// one give it back.
  void shut_down(TimePoint now) {
    endpoint_.reset();
    close(now);
  }
  /// Does what is due. Returns how many failures of the server callers have met.
  [[nodiscard]] std::size_t tick(TimePoint now);
  [[nodiscard]] TimePoint next_time() const noexcept;
  void on_event(bool readable, bool writable, TimePoint now) override;
  void close_descriptor() noexcept { connection_.abandon(); }

 private:
  enum class Owner : std::uint8_t {
    kIoThread,
    kNobody,     ///< idle
    kCaller,     ///< a caller's
    kReclaimed,  ///< a caller's, who is to give it back to the I/O thread
    kReturned,   ///< the I/O thread's, once it looks
  };
  enum class State : std::uint8_t {
    kClosed,  ///< until until_
    kConnecting,
    kGreeting,
    kLent,        ///< as Owner says
    kSwallowing,  ///< a late reply
  };

  /// Why a caller has given it back.
  struct Returned {
    bool broken = false;  ///< it must be closed
    bool late = false;    ///< the reply is still to come
    bool failed = false;  ///< the server's failure
    std::string error;    ///< an error reply's text
  };

  /// kRedirected: another node has the record, and the caller goes the usual way.
  enum class DirectOutcome : std::uint8_t { kNone, kAnswered, kRedirected, kLate };
  void exchange(std::string_view key, TimePoint deadline, StoreCompletion& done,
                DirectOutcome& outcome);
  void give_back(bool as_it_was) noexcept;

  void open(TimePoint now);
  void go_on_connecting(TimePoint now);
  void greet(TimePoint now);
  void take_greeting(TimePoint now);
  void lend();
  void swallow(TimePoint now);
  [[nodiscard]] std::size_t take_returned(TimePoint now);
  void flush(TimePoint now);
  void reclaim(TimePoint now);
  [[nodiscard]] bool take_back() noexcept;
  void close(TimePoint now);
  void fail(const std::string& why, TimePoint now);

  std::atomic<Owner> owner_{Owner::kIoThread};
  std::atomic<std::uint64_t> reads_{0};  // written by whom it belongs to

  SharedState& shared_;
  Poller& poller_;
  const Address& address_;
  std::optional<Endpoint> endpoint_;
  std::string server_name_;  // whose certificate is expected
  State state_ = State::kClosed;
  TimePoint until_ = TimePoint::min();
  TimePoint lent_since_;
  bool reclaimed_ = false;  // to be closed when it is returned
  base::Backoff backoff_;
  Connection connection_;
  Link::OwnRequest greeting_;
  std::uint32_t greeting_replies_ = 0;
  Returned returned_;  // whose the connection is
};

}  // namespace fcap::redis
