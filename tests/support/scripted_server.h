#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fcap::redis {

/// A server on loopback that says what a test wants it to say. One thread.
class ScriptedServer {
 public:
  using Words = std::vector<std::string>;
  /// The reply to a command, in RESP, on the connection with that number, counted from 0. Nothing:
  /// the server stays silent. On the server's thread.
  using Answer = std::function<std::optional<std::string>(std::size_t connection, const Words&)>;

  explicit ScriptedServer(Answer answer)
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(::bind(listener_, address, size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, address, &size), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    thread_.join();
    for (const Connection& connection : connections_) ::close(connection.fd);
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] int port() const { return ntohs(address_.sin_port); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  /// How many connections were accepted.
  [[nodiscard]] std::size_t accepted() const { return accepted_; }
  /// Sends something on the connection with that number, without having been asked.
  void say(std::size_t connection, std::string text) {
    const std::lock_guard lock(mutex_);
    unasked_.emplace_back(connection, std::move(text));
  }

 private:
  struct Connection {
    int fd = -1;
    std::size_t number = 0;
    std::string input;
  };

  void run() {
    while (!stopping_) {
      say_unasked();
      std::vector<pollfd> polled{{listener_, POLLIN, 0}};
      for (const Connection& connection : connections_) {
        polled.push_back({connection.fd, POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), 10);
      std::size_t i = 1;
      for (auto connection = connections_.begin(); connection != connections_.end(); ++i) {
        if (polled[i].revents == 0 || serve(*connection)) {
          ++connection;
          continue;
        }
        ::close(connection->fd);
        connection = connections_.erase(connection);
      }
      if (polled[0].revents == 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) connections_.push_back({fd, accepted_++, {}});
    }
  }

  void say_unasked() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, text] : std::exchange(unasked_, {})) {
      for (const Connection& connection : connections_) {
        if (connection.number != number) continue;
        ::send(connection.fd, text.data(), text.size(), MSG_NOSIGNAL);
      }
    }
  }

  // False: the client has closed it.
  bool serve(Connection& connection) {
    char bytes[4096];
    const ssize_t got = ::recv(connection.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) return false;
    connection.input.append(bytes, static_cast<std::size_t>(got));
    while (const auto words = take_command(connection.input)) {
      const auto reply = answer_(connection.number, *words);
      if (reply) ::send(connection.fd, reply->data(), reply->size(), MSG_NOSIGNAL);
    }
    return true;
  }

  // "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
  static std::optional<Words> take_command(std::string& input) {
    std::size_t at = 0;
    const auto number = [&]() -> std::optional<std::size_t> {
      const std::size_t end = input.find("\r\n", at);
      if (end == std::string::npos) return std::nullopt;
      const std::size_t value = std::stoul(input.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    const auto count = number();
    if (!count) return std::nullopt;
    Words words;
    while (words.size() < *count) {
      const auto length = number();
      if (!length || input.size() < at + *length + 2) return std::nullopt;
      words.push_back(input.substr(at, *length));
      at += *length + 2;
    }
    input.erase(0, at);
    return words;
  }

  const Answer answer_;
  const int listener_;
  sockaddr_in address_ = {};
  std::atomic<std::size_t> accepted_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, std::string>> unasked_;  // guarded by mutex_
  std::list<Connection> connections_;                         // the thread's own
  std::thread thread_;
};

// --- What servers say.

inline std::string resp_text(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

inline std::string resp_list(const std::vector<std::string>& elements) {
  std::string wire = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) wire += element;
  return wire;
}

/// What a single master without data says.
inline std::string as_single_master(const ScriptedServer::Words& words) {
  if (words[0] == "ROLE") return resp_list({resp_text("master"), ":0\r\n", "*0\r\n"});
  if (words[0] == "CLUSTER") return "-ERR This instance has cluster support disabled\r\n";
  if (words[0] == "HELLO") {
    return resp_list(
        {resp_text("server"), resp_text("redis"), resp_text("version"), resp_text("7.0.15")});
  }
  if (words[0] == "TIME") return resp_list({resp_text("1700000000"), resp_text("0")});
  if (words[0] == "GET") return "$-1\r\n";
  return words[0] == "PING" ? "+PONG\r\n" : "+OK\r\n";
}

/// Whether something holds before long.
template <typename Holds>
bool eventually(Holds&& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace fcap::redis
