#include "postgres/connection_advice.h"

#include <string_view>

#include "postgres/certificate_question.h"

namespace fcap::postgres {

std::string what_to_change(PGconn& failed, const PgWait& wait) {
  const std::string_view words = PQerrorMessage(&failed);
  const auto has = [words](std::string_view part) {
    return words.find(part) != std::string_view::npos;
  };
  if (has("certificate verify failed")) {
    std::string why = why_certificate_is_refused(failed, wait);
    if (!why.empty()) return why;
    return "the server's certificate has expired, or comes from an authority that is not trusted "
           "here (sslrootcert)";
  }
  if (has("does not match host name")) {
    return "connect by a name that the certificate is for (host; the address may stand in "
           "hostaddr), or give the server one that is for this host (its ssl_cert_file)";
  }
  if (has("server does not support SSL")) {
    return "switch TLS on at the server (ssl = on), or correct host, port or sslmode";
  }
  // PostgreSQL until 13 says "SSL off".
  if (has("no encryption") || has("SSL off")) {
    return "the server may accept encrypted connections only: correct sslmode, or the server's "
           "pg_hba.conf";
  }
  if (has("password authentication failed") || has("no password supplied")) {
    return "correct user or password (in fcap-updater, postgres.password_file)";
  }
  return {};
}

}  // namespace fcap::postgres
