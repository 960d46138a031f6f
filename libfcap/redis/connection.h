#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "redis/address.h"
#include "redis/resp_parser.h"
#include "tls/stream.h"

namespace fcap::redis {

/// One non-blocking socket with its bytes in both directions, plain or by TLS. Knows nothing of
/// requests.
///
/// Thread safety: one thread at a time, whichever it is.
class Connection {
 public:
  /// Values of more than `value_bytes_max` are skipped.
  explicit Connection(std::size_t value_bytes_max) : value_bytes_max_(value_bytes_max) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Starts connecting; the socket turns writable when that has ended. With `tls` it goes on with a
  /// handshake with a server whose certificate must be for `server_name`.
  [[nodiscard]] Status open(const Endpoint& endpoint, std::shared_ptr<tls::Context> tls = {},
                            const std::string& server_name = {});
  /// Goes on with connecting when the socket is ready. `connected`: whether that has ended; if not,
  /// the socket must be waited for, as has_output() says.
  [[nodiscard]] Status finish_connect(bool& connected);
  /// Why connecting takes longer than it may.
  [[nodiscard]] std::string overdue() const;
  /// Closes the socket and forgets all bytes.
  void close() noexcept;
  /// Closes this one and goes on with the socket of `other`, which is left closed.
  /// Everything of `other` must have been sent and read.
  void take_over(Connection& other) noexcept;
  /// For a forked child: closes its copy of the socket. Whatever the parent's thread was changing
  /// at that moment is left as it is.
  void abandon() noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Bytes to send; append, then flush().
  [[nodiscard]] std::string& output() noexcept { return output_; }
  /// Sends as much as the socket accepts. Never raises SIGPIPE.
  [[nodiscard]] Status flush();
  /// Whether the socket must be writable to go on.
  [[nodiscard]] bool has_output() const noexcept {
    return !output_.empty() || (tls_ && tls_->wants_output());
  }

  /// Receives the bytes that have arrived, up to a bound, and calls `handler(const Reply&) -> bool`
  /// with each reply. It fails if the handler returns false, or if the bytes are not replies.
  template <typename Handler>
  [[nodiscard]] Status receive(Handler&& handler) {
    if (tls_) tls_->allow_receives(kRoundsMax);
    // What TLS has taken from the socket must be read: the socket will not say that it is there.
    for (int round = 0; round < kRoundsMax || tls_; ++round) {
      bool drained = false;
      if (Status received = receive_bytes(drained); !received.ok()) return received;
      for (;;) {
        const auto outcome = parser_.parse(unparsed());
        if (outcome == RespParser::ParseOutcome::kNeedMore) {
          if (drop_skipped()) continue;
          break;
        }
        if (outcome == RespParser::ParseOutcome::kMalformed) return malformed();
        const bool wanted = handler(parser_.reply());
        input_begin_ += parser_.length_bytes();
        if (!wanted) return unexpected_reply(parser_.reply().kind);
      }
      if (drained) break;
    }
    return {};
  }

  /// Between receive() and the next request, when every answer has come: fails if there is part of
  /// a reply, which would become the beginning of the next answer.
  [[nodiscard]] Status nothing_left() const {
    return unparsed().empty() ? Status{} : early_reply();
  }

 private:
  static constexpr int kRoundsMax = 16;  // so that deadlines are checked in between
  static constexpr std::size_t kInputBytesMin = std::size_t{64} << 10U;

  Status receive_bytes(bool& drained);
  Status receive_by_tls(bool& drained);
  Status flush_by_tls();
  [[nodiscard]] Status tls_error() const;
  void make_room();
  bool drop_skipped();
  [[nodiscard]] std::string_view unparsed() const noexcept {
    return {input_.get() + input_begin_, input_end_ - input_begin_};
  }
  [[nodiscard]] Status malformed() const;
  [[nodiscard]] static Status unexpected_reply(Reply::Kind kind);
  [[nodiscard]] static Status early_reply();

  int fd_ = -1;
  std::unique_ptr<tls::Stream> tls_;
  std::string output_;
  std::size_t output_sent_ = 0;
  bool answered_ = false;  // something was received
  std::unique_ptr<char[]> input_;
  std::size_t input_bytes_max_ = 0;
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  const std::size_t value_bytes_max_;
  RespParser parser_{value_bytes_max_};
};

}  // namespace fcap::redis
