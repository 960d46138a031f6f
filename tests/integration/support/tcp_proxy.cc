#include "support/tcp_proxy.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fcap::testing {
namespace {

constexpr std::size_t kPieceBytesMax = std::size_t{16} << 10U;

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool send_all(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

// Reads up to `room` bytes that are there already; false at the end.
bool receive(int fd, std::size_t room, std::string& bytes) {
  bytes.resize(room);
  const ssize_t n = ::recv(fd, bytes.data(), room, MSG_DONTWAIT);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return n > 0 || (n < 0 && errno == EAGAIN);
}

}  // namespace

Listener listen_on_loopback() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || ::bind(fd, generic, length) != 0 || ::listen(fd, 128) != 0 ||
      ::getsockname(fd, generic, &length) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  return {fd, ntohs(address.sin_port)};
}

struct TcpProxy::Pair {
  struct Piece {
    Clock::time_point due;
    std::string bytes;
  };
  ~Pair() {
    ::close(client);
    ::close(server);
  }
  int client = -1;
  int server = -1;
  int cuts_seen = 0;
  std::deque<Piece> replies;
};

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  const Listener listener = listen_on_loopback();
  listen_fd_ = listener.fd;
  port_ = listener.port;
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  thread_.join();
  ::close(listen_fd_);
}

void TcpProxy::run() {
  while (!stopping_) {
    std::vector<pollfd> polled = {{listen_fd_, POLLIN, 0}};
    bool holds_replies = false;
    for (const auto& pair : pairs_) {
      polled.push_back({pair->client, POLLIN, 0});
      polled.push_back({pair->server, POLLIN, 0});
      holds_replies = holds_replies || !pair->replies.empty();
    }
    ::poll(polled.data(), polled.size(), holds_replies ? 1 : 5);
    std::erase_if(pairs_, [this](const auto& pair) { return !serve(*pair); });
    if ((polled.front().revents & POLLIN) != 0) accept_one();
  }
}

void TcpProxy::accept_one() {
  const int client = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  ++accepted_;
  auto pair = std::make_unique<Pair>();
  pair->client = client;
  pair->cuts_seen = cuts_;
  pair->server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(server_port_);
  if (refusing_ ||
      ::connect(pair->server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return;
  }
  const int on = 1;
  setsockopt(pair->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(pair->server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  pairs_.push_back(std::move(pair));
}

// False when the pair is to be closed.
bool TcpProxy::serve(Pair& pair) {
  if (pair.cuts_seen != cuts_) return false;
  std::string bytes;
  if (!receive(pair.client, kPieceBytesMax, bytes)) return false;
  if (!send_all(pair.server, bytes)) return false;
  return take_replies(pair) && deliver_replies(pair);
}

bool TcpProxy::is_cut_now() {
  const std::uint32_t most = cut_one_of_;
  if (most == 0) return false;
  if (cut_next_ == 0) cut_next_ = most / 10 + static_cast<std::uint32_t>(random_()) % most;
  if (++replies_ < cut_next_) return false;
  replies_ = cut_next_ = 0;
  return true;
}

bool TcpProxy::take_replies(Pair& pair) {
  const std::int64_t delay_us = delay_us_;
  const std::size_t room = delay_us > 0 ? random_() % kPieceBytesMax + 1 : kPieceBytesMax;
  std::string bytes;
  if (!receive(pair.server, room, bytes)) return false;
  if (bytes.empty()) return true;
  if (cut_at_reply_.exchange(false) || is_cut_now()) return false;
  auto due = Clock::now();
  if (delay_us > 0) {
    due += std::chrono::microseconds{random_() % static_cast<std::uint64_t>(delay_us)};
    if (!pair.replies.empty()) due = std::max(due, pair.replies.back().due);
  }
  pair.replies.push_back({due, std::move(bytes)});
  return true;
}

bool TcpProxy::deliver_replies(Pair& pair) {
  if (stalled_) {
    if (pair.replies.empty() || may_pass_ == 0) return true;
    std::string& next = pair.replies.front().bytes;
    const std::size_t count = std::min(may_pass_.load(), next.size());
    may_pass_ -= count;
    if (!send_all(pair.client, next.substr(0, count))) return false;
    next.erase(0, count);
    if (next.empty()) pair.replies.pop_front();
    return true;
  }
  while (!pair.replies.empty() && pair.replies.front().due <= Clock::now()) {
    if (!send_all(pair.client, pair.replies.front().bytes)) return false;
    pair.replies.pop_front();
  }
  return true;
}

}  // namespace fcap::testing
