#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/postgres_server.h"

namespace fcap::testing {

/// One PostgreSQL for all tests of the binary, and for each test a database with the schema of
/// sql/. Without a PostgreSQL the tests are skipped; a fixture that overrides SetUp() calls this
/// one's and returns if IsSkipped().
class PostgresTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!server && PostgresServer::available()) server = std::make_unique<PostgresServer>();
  }

  void SetUp() override {
    if (!server) GTEST_SKIP() << "PostgreSQL is missing";
    database_ = make_database();
  }

  virtual std::string make_database() { return server->new_database(); }

  void sql(const std::string& statements) const { server->sql(database_, statements); }
  [[nodiscard]] std::string value(const std::string& statement) const {
    return server->value(database_, statement);
  }

  static inline std::unique_ptr<PostgresServer> server;
  std::string database_;
};

}  // namespace fcap::testing
