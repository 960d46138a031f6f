#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// What a statement gave, as text; NULL is "NULL".
struct SqlAnswer {
  std::vector<std::vector<std::string>> rows;
  std::string error;  ///< the SQLSTATE; empty: none
  std::string message;
  std::string constraint;  ///< the one that was violated
};

/// A private PostgreSQL, and a simple way to talk to it that shares no code with libfcap.
///
///     if (!PostgresServer::available()) GTEST_SKIP() << "PostgreSQL is missing";
///     PostgresServer postgres;
///     const std::string database = postgres.new_database();
///     postgres.sql(database, "INSERT INTO campaigns …");
class PostgresServer {
 public:
  /// Whether this machine has the server and its client.
  static bool available();

  PostgresServer();

  /// A new database with the schema of sql/, and its connection string.
  std::string new_database();
  /// The same without any schema.
  std::string new_empty_database();

  /// Runs statements and gives the last one's answer; throws std::runtime_error when they fail.
  std::vector<std::vector<std::string>> sql(const std::string& conninfo,
                                            const std::string& statements) const;
  /// The same for statements that may fail.
  SqlAnswer try_sql(const std::string& conninfo, const std::string& statements) const;
  /// The single value of a statement.
  std::string value(const std::string& conninfo, const std::string& statement) const {
    return sql(conninfo, statement).at(0).at(0);
  }

  /// From now on the server speaks TLS with this certificate, besides plain text.
  void use_tls(const std::string& certificate_file, const std::string& key_file) const;
  /// From now on it speaks plain text only.
  void use_no_tls() const;
  /// A line of pg_hba.conf, before all others: who may connect, and how. Otherwise everybody may.
  void add_access_rule(const std::string& line) const;

  void start() { service_.start(); }
  void stop() { service_.stop(); }
  void kill() { service_.kill(); }
  void freeze() { service_.freeze(); }
  void thaw() { service_.thaw(); }

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  [[nodiscard]] std::string conninfo_of(const std::string& database) const;

  TemporaryDirectory directory_;
  Service service_;
  int databases_ = 0;
};

/// sql/migrate.
Finished migrate(const std::string& conninfo, const std::vector<std::string>& options = {});

}  // namespace fcap::testing
