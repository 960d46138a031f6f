// In place of the other files when the CMake option FCAP_TLS is off: no Context can be made, and so
// no Stream.
#include <utility>

#include "tls/stream.h"

namespace fcap::tls {

void FreeMethod::operator()(bio_method_st* /*method*/) const noexcept {}
void FreeContext::operator()(ssl_ctx_st* /*context*/) const noexcept {}
void FreeSession::operator()(ssl_session_st* /*session*/) const noexcept {}
void FreeStream::operator()(ssl_st* /*stream*/) const noexcept {}

namespace {

Status absent() {
  return Status::error(StatusCode::kInvalidArgument,
                       "redis tls.enabled: this libfcap was built without TLS (CMake option "
                       "FCAP_TLS)");
}

}  // namespace

bool available() noexcept {
  return false;
}

Context::~Context() = default;

Stream::~Stream() = default;

// NOLINTBEGIN(performance-unnecessary-value-param): as where there is TLS
Result<std::shared_ptr<Context>> Context::create(const RedisTls& /*options*/,
                                                 CertificateAdvice /*advice*/) {
  return absent();
}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<Context> /*context*/, int /*fd*/,
                                               const std::string& /*server_name*/,
                                               std::string /*server*/) {
  return absent();
}
// NOLINTEND(performance-unnecessary-value-param)

Stream::StreamOutcome Stream::handshake() {
  return StreamOutcome::kFailed;
}

std::string Stream::overdue() const {
  return {};
}

bool Stream::resumed() const noexcept {
  return false;
}

Stream::StreamOutcome Stream::read(std::span<char> /*room*/, std::size_t& got) {
  got = 0;
  return StreamOutcome::kFailed;
}

Stream::StreamOutcome Stream::write(std::string_view /*bytes*/, std::size_t& sent) {
  sent = 0;
  return StreamOutcome::kFailed;
}

}  // namespace fcap::tls
