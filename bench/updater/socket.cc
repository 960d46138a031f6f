#include "updater/socket.h"

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fcap::bench {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

void no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket Socket::connect(int port) {
  Socket socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_in address = loopback(port);
  checked(::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connect");
  no_delay(socket.fd_);
  return socket;
}

Socket Socket::listen() {
  Socket socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_in address = loopback(0);
  checked(::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  checked(::listen(socket.fd_, 1), "listen");
  return socket;
}

int Socket::port() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  checked(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
  return ntohs(address.sin_port);
}

Socket Socket::accept() const {
  Socket socket(checked(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC), "accept"));
  no_delay(socket.fd_);
  return socket;
}

void Socket::receive(std::string& bytes) const {
  bytes.resize(std::size_t{256} << 10U);
  ssize_t got = 0;
  do {
    got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  // A peer that ends hastily is one that has ended.
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
}

void Socket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    bytes.remove_prefix(static_cast<std::size_t>(checked(static_cast<int>(sent), "send")));
  }
}

}  // namespace fcap::bench
