#include "redis/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fcap::redis {
namespace {

constexpr int kKeepIdleSeconds = 15;
constexpr int kKeepEverySeconds = 5;
constexpr int kKeepProbes = 3;
constexpr int kUnsentForMs = 30'000;

Status io_error(const char* what, int error) {
  return Status::error(StatusCode::kUnavailable,
                       std::string(what) + ": " + std::generic_category().message(error), true);
}

std::string_view words_for(Reply::Kind kind) noexcept {
  switch (kind) {
    case Reply::Kind::kNil:
      return "nil";
    case Reply::Kind::kInteger:
      return "an integer";
    case Reply::Kind::kString:
      return "a string";
    case Reply::Kind::kStatus:
      return "a status";
    case Reply::Kind::kError:
      return "an error";
    case Reply::Kind::kArray:
      return "an array";
    case Reply::Kind::kOversized:
      return "a value that is too long";
  }
  return "nil";
}

Status closed_by_server() {
  return Status::error(StatusCode::kUnavailable, "closed by the server", true);
}

}  // namespace

Status Connection::open(const Endpoint& endpoint, std::shared_ptr<tls::Context> tls,
                        const std::string& server_name) {
  close();
  fd_ = ::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return io_error("socket", errno);
  const int on = 1;
  if (endpoint.family() != AF_UNIX) {
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // An idle connection whose peer vanished is noticed before a request is spent on it.
    setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepIdleSeconds, sizeof(kKeepIdleSeconds));
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepEverySeconds, sizeof(kKeepEverySeconds));
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &kKeepProbes, sizeof(kKeepProbes));
    // So is a peer that vanishes while data is sent; by default the kernel waits 15 minutes.
    setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnsentForMs, sizeof(kUnsentForMs));
  }
  const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.storage);
  if (::connect(fd_, address, endpoint.length_bytes) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    const int error = errno;
    close();
    return io_error("connect", error);
  }
  if (!tls) return {};
  auto made = tls::Stream::create(std::move(tls), fd_, server_name, endpoint.text());
  if (!made.ok()) {
    close();
    return made.status();
  }
  tls_ = std::move(made).value();
  return {};
}

Status Connection::finish_connect(bool& connected) {
  connected = false;
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return io_error("connect", error);
  const auto outcome = tls_ ? tls_->handshake() : tls::Stream::StreamOutcome::kDone;
  if (outcome == tls::Stream::StreamOutcome::kFailed) return tls_error();
  connected = outcome == tls::Stream::StreamOutcome::kDone;
  return {};
}

std::string Connection::overdue() const {
  return tls_ && tls_->begun() ? tls_->overdue() : "connect: timed out";
}

void Connection::close() noexcept {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  output_.clear();
  output_sent_ = 0;
  answered_ = false;
  input_begin_ = input_end_ = 0;
  parser_ = RespParser{value_bytes_max_};
}

void Connection::take_over(Connection& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  tls_ = std::move(other.tls_);
  answered_ = other.answered_;
  other.close();
  // `other` may not be used again for long, so its memory is released.
  other.input_.reset();
  other.input_bytes_max_ = 0;
}

// Nothing else is touched: the parent may have been changing it when it forked.
void Connection::abandon() noexcept {
  [[maybe_unused]] const tls::Stream* leaked = tls_.release();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Status Connection::flush() {
  if (tls_) return flush_by_tls();
  while (output_sent_ < output_.size()) {
    const ssize_t sent = ::send(fd_, output_.data() + output_sent_, output_.size() - output_sent_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      output_sent_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      output_.erase(0, output_sent_);
      output_sent_ = 0;
      return {};
    } else if (errno != EINTR) {
      return io_error("send", errno);
    }
  }
  output_.clear();
  output_sent_ = 0;
  return {};
}

Status Connection::receive_bytes(bool& drained) {
  make_room();
  if (tls_) return receive_by_tls(drained);
  const std::size_t room = input_bytes_max_ - input_end_;
  const ssize_t got = ::recv(fd_, input_.get() + input_end_, room, MSG_DONTWAIT);
  if (got > 0) {
    answered_ = true;
    input_end_ += static_cast<std::size_t>(got);
    drained = static_cast<std::size_t>(got) < room;
    return {};
  }
  drained = true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  Status status = got == 0 ? closed_by_server() : io_error("recv", errno);
  if (answered_) return status;
  return Status::error(status.code(),
                       status.text() +
                           " before its first answer (if the server expects TLS: "
                           "option tls.enabled)",
                       true);
}

Status Connection::tls_error() const {
  return Status::error(StatusCode::kUnavailable, tls_->error(), true);
}

Status Connection::flush_by_tls() {
  while (output_sent_ < output_.size()) {
    std::size_t sent = 0;
    const auto outcome = tls_->write(std::string_view(output_).substr(output_sent_), sent);
    output_sent_ += sent;
    if (outcome == tls::Stream::StreamOutcome::kFailed) return tls_error();
    if (outcome == tls::Stream::StreamOutcome::kClosed) return closed_by_server();
    if (outcome == tls::Stream::StreamOutcome::kAgain) break;
  }
  output_.erase(0, output_sent_);
  output_sent_ = 0;
  return {};
}

Status Connection::receive_by_tls(bool& drained) {
  const std::size_t before = input_end_;
  while (input_end_ < input_bytes_max_) {
    std::size_t got = 0;
    const auto outcome =
        tls_->read({input_.get() + input_end_, input_bytes_max_ - input_end_}, got);
    input_end_ += got;
    if (outcome == tls::Stream::StreamOutcome::kDone) continue;
    drained = true;
    // What came before the end is worth reading; the socket keeps saying that it has ended.
    if (outcome == tls::Stream::StreamOutcome::kAgain || input_end_ > before) return {};
    return outcome == tls::Stream::StreamOutcome::kClosed ? closed_by_server() : tls_error();
  }
  return {};
}

// Drops the bytes that the parser skips. Returns whether these were the last of them.
bool Connection::drop_skipped() {
  if (parser_.skip_left() == 0) return false;
  const std::size_t from = input_begin_ + parser_.skip_at();
  if (from >= input_end_) return false;
  const std::size_t dropped = std::min(input_end_ - from, parser_.skip_left());
  std::memmove(input_.get() + from, input_.get() + from + dropped, input_end_ - from - dropped);
  input_end_ -= dropped;
  parser_.skipped(dropped);
  return parser_.skip_left() == 0;
}

void Connection::make_room() {
  const std::size_t held = input_end_ - input_begin_;
  if (held == 0) {
    input_begin_ = input_end_ = 0;
    if (input_bytes_max_ == kInputBytesMin) return;
    input_ = std::make_unique_for_overwrite<char[]>(kInputBytesMin);
    input_bytes_max_ = kInputBytesMin;
    return;
  }
  if (input_bytes_max_ - input_end_ >= input_bytes_max_ / 2) return;
  if (held <= input_bytes_max_ / 2) {
    std::memmove(input_.get(), input_.get() + input_begin_, held);
  } else {
    // One reply is larger than half the room. The parser bounds how far this goes.
    auto larger = std::make_unique_for_overwrite<char[]>(input_bytes_max_ * 2);
    std::memcpy(larger.get(), input_.get() + input_begin_, held);
    input_ = std::move(larger);
    input_bytes_max_ *= 2;
  }
  input_begin_ = 0;
  input_end_ = held;
}

Status Connection::malformed() const {
  // How an alert of TLS begins.
  if (!tls_ && unparsed().starts_with("\x15\x03")) {
    return Status::error(StatusCode::kUnavailable,
                         "the server speaks TLS on this port (option tls.enabled)", true);
  }
  std::string shown;
  for (const char c : unparsed().substr(0, 32)) {
    const bool printable = c >= ' ' && c <= '~';
    shown += printable ? c : '.';
  }
  return Status::error(StatusCode::kCorrupt,
                       "the peer does not speak Redis' protocol: \"" + shown + "\"");
}

Status Connection::unexpected_reply(Reply::Kind kind) {
  return Status::error(StatusCode::kCorrupt, "the server sent a reply that nothing asked for: " +
                                                 std::string(words_for(kind)));
}

Status Connection::early_reply() {
  return Status::error(StatusCode::kCorrupt, "the server sent a reply without a request");
}

}  // namespace fcap::redis
