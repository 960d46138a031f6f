#include "tls/context.h"

#include <system_error>
#include <utility>

#include <openssl/ssl.h>

#include "tls/callbacks.h"
#include "tls/caller_errors.h"

namespace fcap::tls {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10U;

// In OpenSSL's words, of the error that came first.
std::string reason() {
  const unsigned long code = ERR_peek_error();
  if (ERR_GET_LIB(code) == ERR_LIB_SYS) {
    return std::generic_category().message(ERR_GET_REASON(code));
  }
  const char* const text = ERR_reason_error_string(code);
  return text != nullptr ? text : "unknown error";
}

Status unusable(const char* option, const std::string& path, const char* what) {
  return Status::error(StatusCode::kInvalidArgument, "redis tls." + std::string(option) + ": \"" +
                                                         path + "\" " + what + ": " + reason());
}

}  // namespace

void FreeMethod::operator()(bio_method_st* method) const noexcept {
  BIO_meth_free(method);
}
void FreeContext::operator()(ssl_ctx_st* context) const noexcept {
  SSL_CTX_free(context);
}
void FreeSession::operator()(ssl_session_st* session) const noexcept {
  SSL_SESSION_free(session);
}

bool available() noexcept {
  return true;
}

Context::Context(const RedisTls& options, CertificateAdvice advice)
    : options_(options), advice_(std::move(advice)) {}

Context::~Context() {
  const CallerErrors caller;
  sessions_.clear();
  context_.reset();
}

Result<std::shared_ptr<Context>> Context::create(const RedisTls& options,
                                                 CertificateAdvice advice) {
  const CallerErrors caller;
  // OpenSSL must not clean up at exit(), because a host may destroy its Checker later than that.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ERR_clear_error();
  std::shared_ptr<Context> context(new Context(options, std::move(advice)));
  if (Status loaded = context->load(); !loaded.ok()) return loaded;
  return context;
}

Status Context::load() {
  method_.reset(Callbacks::make_method());
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = context_.get();
  if (!method_ || context == nullptr) {
    return Status::error(StatusCode::kInternal, "redis tls: OpenSSL: " + reason());
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Many records in one recv(), not two recv() per record.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReceiveBytes);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  Callbacks::install(context);

  const auto or_null = [](const std::string& path) {
    return path.empty() ? nullptr : path.c_str();
  };
  const std::string& ca_file = options_.ca_file;
  const std::string& ca_directory = options_.ca_directory;
  if (ca_file.empty() && ca_directory.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  }
  if (!ca_file.empty() && SSL_CTX_load_verify_file(context, or_null(ca_file)) != 1) {
    return unusable("ca_file", ca_file, "holds no certificate that can be used");
  }
  if (!ca_directory.empty() && SSL_CTX_load_verify_dir(context, or_null(ca_directory)) != 1) {
    return unusable("ca_directory", ca_directory, "cannot be used");
  }
  ERR_clear_error();
  const std::string& certificate = options_.certificate_file;
  if (certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return unusable("certificate_file", certificate, "holds no certificate that can be used");
  }
  const std::string& key = options_.key_file.empty() ? certificate : options_.key_file;
  const char* const key_option = options_.key_file.empty() ? "certificate_file" : "key_file";
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable(key_option, key,
                    "holds no private key that can be used (without a passphrase, and of the "
                    "certificate in tls.certificate_file)");
  }
  return {};
}

Session Context::session(const std::string& server) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(server);
  if (found == sessions_.end()) return {};
  // A copy, because OpenSSL spoils a session of TLS 1.3 that has been used once.
  return Session(SSL_SESSION_dup(found->second.get()));
}

void Context::keep_session(const std::string& server, Session session) {
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= kSessionsMax && !sessions_.contains(server)) sessions_.clear();
  sessions_[server] = std::move(session);
}

void Context::count_handshake(bool resumed) noexcept {
  handshakes_.fetch_add(1, std::memory_order_relaxed);
  if (resumed) resumed_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fcap::tls
