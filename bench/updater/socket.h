#pragma once

#include <string>

namespace fcap::bench {

/// A socket on loopback, closed with it. Throws when something goes wrong.
class Socket {
 public:
  explicit Socket(int fd) noexcept : fd_(fd) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// To 127.0.0.1:`port`.
  static Socket connect(int port);
  /// On any free port of 127.0.0.1.
  static Socket listen();
  [[nodiscard]] int port() const;
  [[nodiscard]] Socket accept() const;
  /// Gives the bytes that are there; empty when the peer has closed. Waits for the first.
  void receive(std::string& bytes) const;
  void send(std::string_view bytes) const;

 private:
  int fd_;
};

}  // namespace fcap::bench
