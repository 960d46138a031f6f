#pragma once

#include <openssl/ssl.h>

namespace fcap::tls {

/// What OpenSSL calls, for the Stream that it is about.
struct Callbacks {
  /// A BIO over the Stream's socket. OpenSSL's own would raise SIGPIPE.
  static BIO_METHOD* make_method();
  static void install(SSL_CTX* context);

  static int send(BIO* bio, const char* bytes, int count);
  static int receive(BIO* bio, char* room, int count);
  static int keep_session(SSL* ssl, SSL_SESSION* session);
  static int on_certificate(int good, X509_STORE_CTX* check);
};

}  // namespace fcap::tls
