#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

namespace fcap::testing {

/// Stands between a client and a server on loopback, and misbehaves as it is told. One thread.
/// Thread safety: all functions from any thread.
class TcpProxy {
 public:
  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  /// "127.0.0.1:port".
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Replies are held back for a random time up to this, in pieces of random size, in order.
  void delay_replies(std::chrono::microseconds longest) { delay_us_ = longest.count(); }
  /// While set, no reply passes; then they all do.
  void stall_replies(bool stalled) { stalled_ = stalled; }
  /// So many bytes of replies pass nevertheless.
  void let_pass(std::size_t bytes) { may_pass_ += bytes; }
  /// The next reply, whoever waits for it, is lost together with its connection.
  void cut_before_next_reply() { cut_at_reply_ = true; }
  /// Likewise now and then: one reply of a random number, up to this, at least a tenth of it. So
  /// many that a new connection is greeted first, however slow the machine is.
  void cut_one_reply_of(std::uint32_t most) { cut_one_of_ = most; }
  /// Closes all connections there are.
  void cut() { ++cuts_; }
  /// Where new connections lead from now on; those that stand stay.
  void lead_to(int server_port) { server_port_ = server_port; }
  /// While set, new connections are closed at once.
  void refuse(bool refusing) { refusing_ = refusing; }

  /// How many connections were accepted.
  [[nodiscard]] std::size_t accepted() const { return accepted_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Pair;

  void run();
  void accept_one();
  bool serve(Pair& pair);
  bool take_replies(Pair& pair);
  bool is_cut_now();
  bool deliver_replies(Pair& pair);

  std::atomic<int> server_port_;
  int listen_fd_;
  int port_ = 0;
  std::atomic<std::int64_t> delay_us_{0};
  std::atomic<bool> stalled_{false};
  std::atomic<std::size_t> may_pass_{0};
  std::atomic<bool> cut_at_reply_{false};
  std::atomic<std::uint32_t> cut_one_of_{0};
  std::atomic<bool> refusing_{false};
  std::atomic<int> cuts_{0};
  std::atomic<std::size_t> accepted_{0};
  std::atomic<bool> stopping_{false};

  // The thread's own.
  std::list<std::unique_ptr<Pair>> pairs_;
  std::mt19937 random_{1};
  std::uint32_t replies_ = 0;   // since the last one that was cut
  std::uint32_t cut_next_ = 0;  // so many
  std::thread thread_;
};

/// A free TCP port on 127.0.0.1 that this listens on, with the descriptor.
struct Listener {
  int fd;
  int port;
};
Listener listen_on_loopback();

}  // namespace fcap::testing
