#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <fcap/redis_options.h>
#include <fcap/status.h>

struct bio_method_st;
struct ssl_ctx_st;
struct ssl_session_st;

namespace fcap::tls {

struct FreeMethod {
  void operator()(bio_method_st* method) const noexcept;
};
struct FreeContext {
  void operator()(ssl_ctx_st* context) const noexcept;
};
struct FreeSession {
  void operator()(ssl_session_st* session) const noexcept;
};
using Session = std::unique_ptr<ssl_session_st, FreeSession>;

/// How texts about a certificate that is refused name what to change.
struct CertificateAdvice {
  std::string authorities = "options tls.ca_file, tls.ca_directory";
  std::string server_name = "option tls.server_name";
  std::string renewal = "renew it on the server";
};

/// Whether this build has TLS (the CMake option FCAP_TLS).
[[nodiscard]] bool available() noexcept;

/// What all connections of a client have in common: trusted authorities, the client's certificate,
/// and the sessions that servers gave, so that a later handshake is a short one. Reads its files
/// once, when it is made.
///
/// Thread safety: all functions from any thread. OpenSSL's error queue and errno of the calling
/// thread stay as they are.
class Context {
 public:
  /// Fails, naming the option, on a file that cannot be used, and if this build has no TLS.
  static Result<std::shared_ptr<Context>> create(const RedisTls& options,
                                                 CertificateAdvice advice = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// How many handshakes were completed, and how many of them by resuming a session.
  [[nodiscard]] std::uint64_t handshakes() const noexcept {
    return handshakes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t resumed() const noexcept {
    return resumed_.load(std::memory_order_relaxed);
  }

 private:
  friend class Stream;
  friend struct Callbacks;
  static constexpr std::size_t kSessionsMax = 64;

  Context(const RedisTls& options, CertificateAdvice advice);
  Status load();
  /// A copy of the latest session with `server`; null if it has not issued one.
  [[nodiscard]] Session session(const std::string& server);
  void keep_session(const std::string& server, Session session);
  void count_handshake(bool resumed) noexcept;

  const RedisTls options_;
  const CertificateAdvice advice_;
  std::unique_ptr<bio_method_st, FreeMethod> method_;
  std::unique_ptr<ssl_ctx_st, FreeContext> context_;
  std::atomic<std::uint64_t> handshakes_{0};
  std::atomic<std::uint64_t> resumed_{0};
  std::mutex mutex_;
  std::map<std::string, Session> sessions_;  // guarded by mutex_
};

}  // namespace fcap::tls
