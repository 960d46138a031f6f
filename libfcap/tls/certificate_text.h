#pragma once

#include <string>

#include <openssl/x509.h>

#include "tls/context.h"

namespace fcap::tls {

/// Why a server's certificate is refused, and what to change.
[[nodiscard]] std::string why_refused(X509_STORE_CTX* check, const std::string& server_name,
                                      const CertificateAdvice& advice);

}  // namespace fcap::tls
