// PostgreSQL by TLS with a verified host name, as the connection string says, and what each mistake
// is called.
#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres/pg_connection.h"
#include "support/certificates.h"
#include "support/postgres_server.h"
#include "support/process.h"

namespace fcap {
namespace postgres_tls_pg_test {

using ::testing::AllOf;
using testing::Certificate;
using testing::Certificates;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PostgresServer;

class PostgresTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!PostgresServer::available() || !Certificates::available()) return;
    authority.emplace("fcap test authority");
    server.emplace();
    database = server->new_empty_database();
  }
  static void TearDownTestSuite() {
    server.reset();
    authority.reset();
  }
  void SetUp() override {
    if (!server) GTEST_SKIP() << "PostgreSQL or openssl is missing";
    present(authority->issue("server", "IP:127.0.0.1"));
    expect_soon(verified(), "encrypted");
  }

  static void present(const Certificate& certificate) {
    server->use_tls(certificate.certificate_file, certificate.key_file);
  }
  static std::string verified() { return verified(*authority); }
  static std::string verified(const Certificates& trusted) {
    return database + " sslmode=verify-full sslrootcert=" + trusted.ca_file();
  }
  // Whether its connection is encrypted, or why it could not be made.
  static std::string outcome(const std::string& conninfo) {
    const postgres::PgWait wait{std::chrono::steady_clock::now() + std::chrono::seconds(60)};
    auto connection = postgres::PgConnection::connect(conninfo, wait);
    if (!connection.ok()) return connection.status().text();
    auto rows =
        connection.value().query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", wait);
    if (!rows.ok()) return rows.status().text();
    return rows.value().cell(0, 0) == "t" ? "encrypted" : "plain";
  }
  // The server obeys a moment after it was told. What it then answers.
  static std::string expect_soon(const std::string& conninfo, const std::string& part) {
    std::string last;
    EXPECT_TRUE(testing::wait_until([&] {
      last = outcome(conninfo);
      return last.find(part) != std::string::npos;
    })) << last;
    return last;
  }

  static inline std::optional<Certificates> authority;
  static inline std::optional<PostgresServer> server;
  static inline std::string database;
};

TEST_F(PostgresTls, AWrongHostNameIsNamed) {
  present(authority->issue("elsewhere", "DNS:db.example"));
  EXPECT_THAT(
      expect_soon(verified(), "does not match host name"),
      AllOf(HasSubstr("a name that the certificate is for (host;"), HasSubstr("ssl_cert_file")));
}

TEST_F(PostgresTls, AnExpiredCertificateIsNamed) {
  present(authority->issue_expired("expired", "IP:127.0.0.1"));
  EXPECT_THAT(expect_soon(verified(), "certificate verify failed"),
              AllOf(HasSubstr("the server's certificate (CN = expired) expired at 2021-01-01"),
                    HasSubstr("ssl_cert_file"), Not(HasSubstr("authority"))));
}

TEST_F(PostgresTls, AnUnknownAuthorityIsNamed) {
  const Certificates other("another authority");
  EXPECT_THAT(outcome(verified(other)),
              AllOf(HasSubstr("certificate verify failed"),
                    HasSubstr("comes from an authority that is not trusted here (sslrootcert)"),
                    Not(HasSubstr("expired"))));
  EXPECT_THAT(outcome(database + " sslmode=verify-full sslrootcert=/nowhere.pem"),
              HasSubstr("/nowhere.pem"));
}

TEST_F(PostgresTls, AModeThatVerifiesNoNameIsToldBothReasons) {
  const Certificates other("another authority");
  EXPECT_THAT(outcome(database + " sslmode=verify-ca sslrootcert=" + other.ca_file()),
              HasSubstr("has expired, or comes from an authority that is not trusted here "
                        "(sslrootcert)"));
}

TEST_F(PostgresTls, AServerWithoutTlsIsNamed) {
  server->use_no_tls();
  EXPECT_THAT(expect_soon(verified(), "server does not support SSL"),
              AllOf(HasSubstr("ssl = on"), HasSubstr("sslmode")));
}

TEST_F(PostgresTls, PlainTextWhereTheServerWantsTlsIsNamed) {
  server->sql(database, "CREATE ROLE wary LOGIN");
  server->add_access_rule("hostnossl all wary all reject");
  const std::string conninfo = database + " user=wary";
  EXPECT_THAT(expect_soon(conninfo + " sslmode=disable", "no encryption"), HasSubstr("sslmode"));
  EXPECT_EQ(outcome(conninfo + " sslmode=verify-full sslrootcert=" + authority->ca_file()),
            "encrypted");
}

TEST_F(PostgresTls, AWrongPasswordIsNamedAndNotShown) {
  server->sql(database, "CREATE ROLE secretive LOGIN PASSWORD 'right'");
  server->add_access_rule("host all secretive all scram-sha-256");
  const std::string conninfo = verified() + " user=secretive";
  EXPECT_THAT(expect_soon(conninfo + " password=hunter2", "password authentication failed"),
              AllOf(HasSubstr("correct user or password"), HasSubstr("postgres.password_file"),
                    Not(HasSubstr("hunter2"))));
  EXPECT_THAT(outcome(conninfo), HasSubstr("correct user or password"));
  EXPECT_EQ(outcome(conninfo + " password=right"), "encrypted");
}

}  // namespace postgres_tls_pg_test
}  // namespace fcap
