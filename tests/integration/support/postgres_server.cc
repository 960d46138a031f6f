#include "support/postgres_server.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <libpq-fe.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_paths.h"

namespace fcap::testing {
namespace {

constexpr const char* kTemplate = "fcap_template";

struct Finish {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool has_server() {
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
    if (is_there(version.path() / "bin" / "initdb")) return true;
  }
  return false;
}

}  // namespace

bool PostgresServer::available() {
  return present(has_program("psql") && has_server(), "PostgreSQL's server or psql is missing");
}

PostgresServer::PostgresServer() : service_("postgres", directory_.path()) {
  // Databases are made by copying a template, which its sessions must have left. Readable, because
  // PostgreSQL runs under an account of its own.
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  service_.start();
  sql(conninfo_of("postgres"), std::string("CREATE DATABASE ") + kTemplate);
  const Finished finished = migrate(conninfo_of(kTemplate));
  if (finished.exit_code != 0) throw std::runtime_error("sql/migrate: " + finished.errors);
}

std::string PostgresServer::conninfo_of(const std::string& database) const {
  return "host=127.0.0.1 port=" + service_.value("port") + " user=postgres dbname=" + database;
}

void PostgresServer::use_tls(const std::string& certificate_file,
                             const std::string& key_file) const {
  // The server reads its key only if it is the server's own.
  const std::string data = value(conninfo_of("postgres"), "SHOW data_directory");
  struct stat owner = {};
  ::stat(data.c_str(), &owner);
  for (const auto& [from, name] :
       {std::pair(certificate_file, "/tls.pem"), std::pair(key_file, "/tls.key")}) {
    const std::string to = data + name;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(to, std::filesystem::perms(0600));
    if (::chown(to.c_str(), owner.st_uid, owner.st_gid) != 0) {
      throw std::runtime_error("cannot give " + to + " to the server's account");
    }
  }
  for (const std::string& setting :
       {std::string("ssl_cert_file = 'tls.pem'"), std::string("ssl_key_file = 'tls.key'"),
        std::string("ssl = on")}) {
    sql(conninfo_of("postgres"), "ALTER SYSTEM SET " + setting);
  }
  sql(conninfo_of("postgres"), "SELECT pg_reload_conf()");
}

void PostgresServer::use_no_tls() const {
  sql(conninfo_of("postgres"), "ALTER SYSTEM SET ssl = off");
  sql(conninfo_of("postgres"), "SELECT pg_reload_conf()");
}

void PostgresServer::add_access_rule(const std::string& line) const {
  const std::string path = value(conninfo_of("postgres"), "SHOW hba_file");
  std::ostringstream others;
  others << std::ifstream(path).rdbuf();
  std::ofstream(path) << line << "\n" << others.str();
  sql(conninfo_of("postgres"), "SELECT pg_reload_conf()");
}

std::string PostgresServer::new_database() {
  const std::string name = "test" + std::to_string(++databases_);
  sql(conninfo_of("postgres"), "CREATE DATABASE " + name + " TEMPLATE " + kTemplate);
  return conninfo_of(name);
}

std::string PostgresServer::new_empty_database() {
  const std::string name = "test" + std::to_string(++databases_);
  sql(conninfo_of("postgres"), "CREATE DATABASE " + name);
  return conninfo_of(name);
}

SqlAnswer PostgresServer::try_sql(const std::string& conninfo,
                                  const std::string& statements) const {
  const std::unique_ptr<PGconn, Finish> connection(PQconnectdb(conninfo.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  const std::unique_ptr<PGresult, Clear> result(PQexec(connection.get(), statements.c_str()));
  SqlAnswer answer;
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    answer.error = state == nullptr ? "no answer" : state;
    answer.message = PQresultErrorMessage(result.get());
    const char* constraint = PQresultErrorField(result.get(), PG_DIAG_CONSTRAINT_NAME);
    if (constraint != nullptr) answer.constraint = constraint;
  }
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    auto& cells = answer.rows.emplace_back();
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      const bool null = PQgetisnull(result.get(), row, column) != 0;
      cells.emplace_back(null ? "NULL" : PQgetvalue(result.get(), row, column));
    }
  }
  return answer;
}

std::vector<std::vector<std::string>> PostgresServer::sql(const std::string& conninfo,
                                                          const std::string& statements) const {
  SqlAnswer answer = try_sql(conninfo, statements);
  if (!answer.error.empty()) throw std::runtime_error(answer.message + " in: " + statements);
  return std::move(answer.rows);
}

Finished migrate(const std::string& conninfo, const std::vector<std::string>& options) {
  std::vector<std::string> command = {FCAP_SOURCE_DIR "/sql/migrate", conninfo};
  command.insert(command.end(), options.begin(), options.end());
  return run(command);
}

}  // namespace fcap::testing
