#include "tls/callbacks.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "tls/certificate_text.h"
#include "tls/stream.h"

namespace fcap::tls {
namespace {

long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// A key that is encrypted must not ask for its passphrase on the terminal.
int no_passphrase(char* /*room*/, int /*count*/, int /*writing*/, void* /*unused*/) {
  return -1;
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

BIO_METHOD* Callbacks::make_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "fcap socket");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, send);
  BIO_meth_set_read(method, receive);
  BIO_meth_set_ctrl(method, control);
  return method;
}

void Callbacks::install(SSL_CTX* context) {
  SSL_CTX_sess_set_new_cb(context, keep_session);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
}

int Callbacks::send(BIO* bio, const char* bytes, int count) {
  auto& stream = *static_cast<Stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto size = static_cast<std::size_t>(count);
  const ssize_t sent = ::send(stream.fd_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<int>(sent);
  if (would_block(errno)) {
    BIO_set_retry_write(bio);
  } else {
    stream.io_error_ = errno;
  }
  return -1;
}

int Callbacks::receive(BIO* bio, char* room, int count) {
  auto& stream = *static_cast<Stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (stream.receives_left_ <= 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  --stream.receives_left_;
  const ssize_t got = ::recv(stream.fd_, room, static_cast<std::size_t>(count), MSG_DONTWAIT);
  if (got > 0) {
    if (stream.first_byte_ < 0) stream.first_byte_ = static_cast<unsigned char>(room[0]);
    return static_cast<int>(got);
  }
  if (got == 0) {
    stream.ended_ = true;
    return 0;
  }
  if (would_block(errno)) {
    BIO_set_retry_read(bio);
  } else {
    stream.io_error_ = errno;
  }
  return -1;
}

int Callbacks::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto& stream = *static_cast<Stream*>(SSL_get_app_data(ssl));
  // A copy, because OpenSSL spoils the session of a connection that ends in an error.
  if (Session copy{SSL_SESSION_dup(session)}) {
    stream.context_->keep_session(stream.server_, std::move(copy));
  }
  return 0;
}

int Callbacks::on_certificate(int good, X509_STORE_CTX* check) {
  if (good == 1) return 1;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& stream = *static_cast<Stream*>(SSL_get_app_data(ssl));
  stream.refusal_ = why_refused(check, stream.server_name_, stream.context_->advice_);
  return 0;
}

}  // namespace fcap::tls
