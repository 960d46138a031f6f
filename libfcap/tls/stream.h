#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tls/context.h"

struct ssl_st;

namespace fcap::tls {

struct FreeStream {
  void operator()(ssl_st* stream) const noexcept;
};

/// TLS over one connected, non-blocking socket, which stays its owner's. Never raises SIGPIPE.
///
/// Thread safety: one thread at a time, whichever it is. OpenSSL's error queue and errno of the
/// calling thread stay as they are.
class Stream {
 public:
  enum class StreamOutcome : std::uint8_t {
    kDone,
    kAgain,   ///< when the socket is writable if wants_output(), and otherwise when it is readable
    kClosed,  ///< by the server
    kFailed,  ///< error() says why
  };

  /// `server_name`: what the server's certificate must be for, a name or an IP address. `server`:
  /// whose session may be resumed.
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Context> context, int fd,
                                                const std::string& server_name, std::string server);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Goes on with the handshake until it is complete or the socket has to be waited for.
  [[nodiscard]] StreamOutcome handshake();
  /// Whether it has sent something.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// What a handshake that has taken too long is waiting for.
  [[nodiscard]] std::string overdue() const;
  /// Whether the handshake resumed an earlier session.
  [[nodiscard]] bool resumed() const noexcept;

  /// Receives from the socket at most so many times from now on; read() says kAgain after that.
  void allow_receives(int count) noexcept { receives_left_ = count; }
  /// Up to `room`; `got` is 0 unless kDone.
  [[nodiscard]] StreamOutcome read(std::span<char> room, std::size_t& got);
  /// Some of `bytes`; `sent` is 0 unless kDone. After kAgain the next call must begin with the same
  /// bytes.
  [[nodiscard]] StreamOutcome write(std::string_view bytes, std::size_t& sent);

  [[nodiscard]] bool wants_output() const noexcept { return wants_output_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// Why the server's certificate was refused; empty: it was not.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  friend struct Callbacks;

  Stream(std::shared_ptr<Context> context, int fd, const std::string& server_name,
         std::string server);
  Status prepare();
  template <typename Call>
  StreamOutcome run(Call&& call);
  [[nodiscard]] std::string failure() const;

  const std::shared_ptr<Context> context_;
  const int fd_;
  const std::string server_name_;
  const std::string server_;
  std::unique_ptr<ssl_st, FreeStream> ssl_;
  int receives_left_ = 1;
  int io_error_ = 0;       // of the last send or recv that failed
  int first_byte_ = -1;    // what the server sent first
  bool ended_ = false;     // the server closed its side
  bool answered_ = false;  // something was read
  bool begun_ = false;
  bool established_ = false;
  bool wants_output_ = false;
  std::string refusal_;  // why the server's certificate was refused
  std::string error_;
};

}  // namespace fcap::tls
