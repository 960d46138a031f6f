// PostgreSQL by TLS with a verified host name, as the connection string says.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres/pg_connection.h"
#include "support/certificates.h"
#include "support/postgres_server.h"
#include "support/process.h"

namespace fcap {
namespace {

using testing::Certificate;
using testing::Certificates;
using ::testing::HasSubstr;
using testing::PostgresServer;

class PostgresTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::available() || !Certificates::available()) {
      GTEST_SKIP() << "PostgreSQL or openssl is missing";
    }
    authority_.emplace("fcap test authority");
    server_.emplace();
    present("server", "IP:127.0.0.1");
    database_ = server_->new_empty_database();
  }
  void present(const std::string& name, const std::string& names) {
    const Certificate certificate = authority_->issue(name, names);
    server_->use_tls(certificate.certificate_file, certificate.key_file);
  }
  [[nodiscard]] std::string verified(const std::string& ca_file) const {
    return database_ + " sslmode=verify-full sslrootcert=" + ca_file;
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
  // The server takes a new certificate a moment after it was told to.
  static void expect_soon(const std::string& conninfo, const std::string& part) {
    std::string last;
    EXPECT_TRUE(testing::wait_until([&] {
      last = outcome(conninfo);
      return last.find(part) != std::string::npos;
    })) << last;
  }

  std::optional<Certificates> authority_;
  std::optional<PostgresServer> server_;
  std::string database_;
};

TEST_F(PostgresTls, VerifyFullEncryptsAndVerifies) {
  expect_soon(verified(authority_->ca_file()), "encrypted");
  const Certificates other("another authority");
  EXPECT_THAT(outcome(verified(other.ca_file())), HasSubstr("certificate verify failed"));
  present("elsewhere", "DNS:db.example");
  expect_soon(verified(authority_->ca_file()), "does not match host name");
}

}  // namespace
}  // namespace fcap
