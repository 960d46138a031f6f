#include "support/tls_redis.h"

#include <stdexcept>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/file_handle.h"

namespace fcap::testing {

int free_port() {
  const base::FileHandle socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.fd(), any, length) != 0 || ::getsockname(socket.fd(), any, &length) != 0) {
    throw std::runtime_error("no port is free");
  }
  return ntohs(address.sin_port);
}

TlsRedis::TlsRedis(const std::string& ca_file, const Certificate& certificate) {
  // Another process may take the port before Redis does.
  std::string answer;
  for (int i = 0; i < 20 && port_ == 0; ++i) {
    const int port = free_port();
    answer = server_.command({"CONFIG", "SET", "tls-ca-cert-file", ca_file, "tls-cert-file",
                              certificate.certificate_file, "tls-key-file", certificate.key_file,
                              "tls-auth-clients", "no", "tls-port", std::to_string(port)});
    if (answer == "OK") port_ = port;
  }
  if (port_ == 0) throw std::runtime_error("Redis does not listen for TLS: " + answer);
}

void TlsRedis::present(const Certificate& certificate) {
  configure({"tls-cert-file", certificate.certificate_file, "tls-key-file", certificate.key_file});
}

void TlsRedis::require_client_certificates(bool required) {
  configure({"tls-auth-clients", required ? "yes" : "no"});
}

void TlsRedis::configure(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"CONFIG", "SET"};
  command.insert(command.end(), words.begin(), words.end());
  const std::string answer = server_.command(command);
  if (answer != "OK") throw std::runtime_error("CONFIG SET: " + answer);
}

}  // namespace fcap::testing
