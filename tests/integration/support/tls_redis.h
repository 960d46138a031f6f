#pragma once

#include <string>

#include "support/certificates.h"
#include "support/redis_server.h"

namespace fcap::testing {

/// A port that nobody listens on, for now.
int free_port();

/// A Redis that listens for TLS, too, on a port of its own. Its plain port stays, for tests to look
/// behind the scenes.
class TlsRedis {
 public:
  TlsRedis(const std::string& ca_file, const Certificate& certificate);

  /// From now on new connections get this certificate.
  void present(const Certificate& certificate);
  void require_client_certificates(bool required);

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string address(const std::string& host = "127.0.0.1") const {
    return host + ":" + std::to_string(port_);
  }
  RedisServer& server() noexcept { return server_; }

 private:
  void configure(const std::vector<std::string>& words);

  RedisServer server_;
  int port_ = 0;
};

}  // namespace fcap::testing
