#pragma once

#include <string>

#include <openssl/x509.h>

namespace fcap::tls {

/// Why a server's certificate is refused, with the option that changes it.
[[nodiscard]] std::string why_refused(X509_STORE_CTX* check, const std::string& server_name);

}  // namespace fcap::tls
