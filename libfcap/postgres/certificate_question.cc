#include "postgres/certificate_question.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/file_handle.h"
#include "tls/stream.h"

namespace fcap::postgres {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* found) const noexcept { freeaddrinfo(found); }
};
struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

// An option as libpq has used it, defaults and the environment included.
std::string option(PGconn& connection, std::string_view keyword) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(PQconninfo(&connection));
  if (!options) return {};
  for (const PQconninfoOption* each = options.get(); each->keyword != nullptr; ++each) {
    if (each->keyword == keyword && each->val != nullptr) return each->val;
  }
  return {};
}

// To the address that libpq has used, so that no name is looked up again.
base::FileHandle connect_again(PGconn& failed, const PgWait& wait) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (::getaddrinfo(PQhostaddr(&failed), PQport(&failed), &hints, &raw) != 0) return {};
  const std::unique_ptr<addrinfo, FreeAddresses> found(raw);
  base::FileHandle socket(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return {};
  }
  if (!wait_for_socket(socket.fd(), POLLOUT, wait).ok()) return {};
  return socket;
}

// Sends PostgreSQL's SSLRequest; whether the server agrees.
bool begin_tls(const base::FileHandle& socket, const PgWait& wait) {
  constexpr std::array<unsigned char, 8> kSslRequest{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};
  const auto sent = ::send(socket.fd(), kSslRequest.data(), kSslRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kSslRequest.size())) return false;
  if (!wait_for_socket(socket.fd(), POLLIN, wait).ok()) return false;
  char answer = 0;
  return ::recv(socket.fd(), &answer, 1, 0) == 1 && answer == 'S';
}

std::string refusal_in_handshake(tls::Stream& stream, int fd, const PgWait& wait) {
  for (;;) {
    if (stream.handshake() != tls::Stream::StreamOutcome::kAgain) return stream.refusal();
    const short events = stream.wants_output() ? POLLOUT : POLLIN;
    if (!wait_for_socket(fd, events, wait).ok()) return {};
  }
}

}  // namespace

std::string why_certificate_is_refused(PGconn& failed, const PgWait& wait) {
  // With another mode, libpq does not verify the host's name, as Stream does.
  const std::string authorities = option(failed, "sslrootcert");
  if (option(failed, "sslmode") != "verify-full" || authorities.empty()) return {};
  RedisTls verified;
  verified.enabled = true;
  if (authorities != "system") verified.ca_file = authorities;
  auto context =
      tls::Context::create(verified, {.authorities = "sslrootcert",
                                      .server_name = "host",
                                      .renewal = "renew it (the server's ssl_cert_file)"});
  if (!context.ok()) return {};
  const base::FileHandle socket = connect_again(failed, wait);
  if (!socket.open() || !begin_tls(socket, wait)) return {};
  auto stream =
      tls::Stream::create(std::move(context).value(), socket.fd(), PQhost(&failed), "PostgreSQL");
  return stream.ok() ? refusal_in_handshake(*stream.value(), socket.fd(), wait) : std::string();
}

}  // namespace fcap::postgres
