#include "tls/stream.h"

#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/callbacks.h"
#include "tls/caller_errors.h"

namespace fcap::tls {
namespace {

// A server's part of a handshake arrives in few pieces; more are read when the socket says so.
constexpr int kReceivesPerStep = 4;

bool is_ip_address(const std::string& name) {
  in6_addr address = {};
  return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

std::string without_last_dot(std::string name) {
  if (name.ends_with('.')) name.pop_back();
  return name;
}

// What the server itself says by an alert; nullptr for others.
const char* alert_text(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return nullptr;
  switch (ERR_GET_REASON(code)) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
      return "the server requires a client certificate (options tls.certificate_file, "
             "tls.key_file)";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return "the server ends the handshake: it may require a client certificate (options "
             "tls.certificate_file, tls.key_file), or have no cipher in common";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return "the server refuses the client's certificate (option tls.certificate_file)";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "the server does not speak TLS 1.2 or later";
    default:
      return nullptr;
  }
}

}  // namespace

void FreeStream::operator()(ssl_st* stream) const noexcept {
  SSL_free(stream);
}

Stream::Stream(std::shared_ptr<Context> context, int fd, const std::string& server_name,
               std::string server)
    : context_(std::move(context)),
      fd_(fd),
      server_name_(without_last_dot(
          context_->options_.server_name.empty() ? server_name : context_->options_.server_name)),
      server_(std::move(server) + " " + server_name_) {}

Stream::~Stream() {
  if (!ssl_) return;
  const CallerErrors caller;
  // Otherwise OpenSSL spoils the session: a connection that ends may be resumed.
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  ssl_.reset();
}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<Context> context, int fd,
                                               const std::string& server_name, std::string server) {
  const CallerErrors caller;
  std::unique_ptr<Stream> stream(
      new Stream(std::move(context), fd, server_name, std::move(server)));
  if (Status prepared = stream->prepare(); !prepared.ok()) return prepared;
  return stream;
}

Status Stream::prepare() {
  ssl_.reset(SSL_new(context_->context_.get()));
  BIO* const bio = ssl_ ? BIO_new(context_->method_.get()) : nullptr;
  if (bio == nullptr) return Status::error(StatusCode::kInternal, "TLS: out of memory", true);
  SSL* const ssl = ssl_.get();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_app_data(ssl, this);
  SSL_set_connect_state(ssl);
  const bool is_address = is_ip_address(server_name_);
  bool named = is_address || SSL_set_tlsext_host_name(ssl, server_name_.c_str()) == 1;
  if (context_->options_.verify) {
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    named = named && !server_name_.empty() &&
            (is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, server_name_.c_str())
                        : X509_VERIFY_PARAM_set1_host(wanted, server_name_.c_str(), 0)) == 1;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, Callbacks::on_certificate);
  }
  if (!named) {
    return Status::error(
        StatusCode::kInvalidArgument,
        "TLS: \"" + server_name_ + "\" is not a host name (option tls.server_name)");
  }
  if (const Session session = context_->session(server_)) SSL_set_session(ssl, session.get());
  return {};
}

// OpenSSL's own SSL_get_error() would need to know which errors are this call's. The state of the
// BIO says what it says.
template <typename Call>
Stream::StreamOutcome Stream::run(Call&& call) {
  wants_output_ = false;
  io_error_ = 0;
  if (call() > 0) return StreamOutcome::kDone;
  SSL* const ssl = ssl_.get();
  if (SSL_want_write(ssl) && BIO_should_write(SSL_get_wbio(ssl)) != 0) {
    wants_output_ = true;
    return StreamOutcome::kAgain;
  }
  if (SSL_want_read(ssl) && BIO_should_read(SSL_get_rbio(ssl)) != 0) return StreamOutcome::kAgain;
  const bool orderly = (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
  if (answered_ && ERR_peek_error() == 0 && io_error_ == 0 && (orderly || ended_)) {
    return StreamOutcome::kClosed;
  }
  error_ = failure();
  return StreamOutcome::kFailed;
}

std::string Stream::failure() const {
  const std::string prefix = established_ ? "TLS: " : "TLS handshake: ";
  if (!refusal_.empty()) return prefix + refusal_;
  const unsigned long code = ERR_peek_last_error();
  if (const char* const alert = alert_text(code)) return prefix + alert;
  // Every record of TLS begins with one of these.
  if (!established_ && first_byte_ >= 0 && (first_byte_ < 0x14 || first_byte_ > 0x18)) {
    return prefix + "the server does not speak TLS on this port (option tls.enabled)";
  }
  // A server may refuse a client only after the client's part of the handshake.
  const char* const hint =
      established_ && !answered_ && context_->options_.certificate_file.empty()
          ? " before its first answer: it may require a client certificate (options "
            "tls.certificate_file, tls.key_file)"
          : "";
  if (io_error_ != 0) return prefix + std::generic_category().message(io_error_) + hint;
  if (ended_ || code == 0) return prefix + "closed by the server" + hint;
  const char* const reason = ERR_reason_error_string(code);
  return prefix + (reason != nullptr ? reason : "failed");
}

Stream::StreamOutcome Stream::handshake() {
  const CallerErrors caller;
  receives_left_ = kReceivesPerStep;
  begun_ = true;
  const StreamOutcome outcome = run([this] { return SSL_do_handshake(ssl_.get()); });
  if (outcome == StreamOutcome::kDone && !established_) {
    established_ = true;
    context_->count_handshake(resumed());
  }
  return outcome;
}

std::string Stream::overdue() const {
  if (first_byte_ >= 0) return "TLS handshake: timed out";
  return "TLS handshake: the server has not answered: it may not speak TLS on this port (option "
         "tls.enabled)";
}

bool Stream::resumed() const noexcept {
  return SSL_session_reused(ssl_.get()) == 1;
}

Stream::StreamOutcome Stream::read(std::span<char> room, std::size_t& got) {
  const CallerErrors caller;
  got = 0;
  const StreamOutcome outcome =
      run([&] { return SSL_read_ex(ssl_.get(), room.data(), room.size(), &got); });
  if (outcome == StreamOutcome::kDone) answered_ = true;
  return outcome;
}

Stream::StreamOutcome Stream::write(std::string_view bytes, std::size_t& sent) {
  const CallerErrors caller;
  sent = 0;
  return run([&] { return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent); });
}

}  // namespace fcap::tls
