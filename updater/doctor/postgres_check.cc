#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "postgres/pg_connection.h"
#include "sources/rule_refresher.h"
#include "sources/segment_loading.h"
#include "updater/doctor/server_checks.h"
#include "updater/options/libraries.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kPostgresAnswersWithin{5};
constexpr std::chrono::seconds kLoadingWithin{60};
constexpr std::chrono::seconds kPostgresSkewMax{1};
// The newest of sql/ when this program was built.
constexpr std::string_view kNewestMigration = FCAP_NEWEST_MIGRATION;

class PostgresDoctor {
 public:
  PostgresDoctor(std::string conninfo, Findings& findings)
      : conninfo_(std::move(conninfo)), findings_(findings) {}

  void look() {
    auto connection = postgres::PgConnection::connect(conninfo_, wait());
    if (!connection.ok()) {
      return say(Level::kError, fmt::format("postgres.conninfo: no connection: start PostgreSQL, "
                                            "or correct the setting ({})",
                                            connection.status().text()));
    }
    look_at_clock(connection.value());
    if (look_at_schema(connection.value())) look_at_rules();
  }

 private:
  using Level = Finding::FindingLevel;

  static postgres::PgWait wait() {
    return {.deadline = std::chrono::steady_clock::now() + kPostgresAnswersWithin};
  }
  void say(Level level, std::string text) {
    findings_.push_back({level, "postgres", std::move(text)});
  }
  void look_at_clock(postgres::PgConnection& connection);
  bool look_at_schema(postgres::PgConnection& connection);
  void look_at_rules();

  const std::string conninfo_;
  Findings& findings_;
};

void PostgresDoctor::look_at_clock(postgres::PgConnection& connection) {
  const auto rows =
      connection.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", wait());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (!rows.ok() || rows.value().count() != 1) return;
  const std::string text(rows.value().cell(0, 0).value_or("0"));
  const milliseconds skew = milliseconds{std::strtoll(text.c_str(), nullptr, 10)} -
                            std::chrono::duration_cast<milliseconds>(now);
  if (std::chrono::abs(skew) <= kPostgresSkewMax) return;
  say(Level::kWarning,
      fmt::format("its clock is {} ms {} this machine's: synchronize both (NTP)",
                  std::chrono::abs(skew).count(), skew.count() > 0 ? "ahead of" : "behind"));
}

bool PostgresDoctor::look_at_schema(postgres::PgConnection& connection) {
  const auto there = connection.query(
      "SELECT to_regclass('cap_rules') IS NOT NULL, "
      "to_regclass('fcap_schema_migrations') IS NOT NULL AND "
      "has_table_privilege(to_regclass('fcap_schema_migrations'), 'SELECT')",
      wait());
  if (!there.ok()) {
    say(Level::kError, there.status().text());
    return false;
  }
  if (there.value().cell(0, 0) != "t") {
    say(Level::kError,
        "fcap's tables do not exist: run fcap-migrate (sql/migrate in a checkout), or name the "
        "schema "
        "that has them in postgres.conninfo (options=-csearch_path=…)");
    return false;
  }
  if (there.value().cell(0, 1) != "t") {
    say(Level::kWarning,
        "the version of the schema is unknown: run sql/roles.sql again, which "
        "grants SELECT ON fcap_schema_migrations TO fcap_reader");
    return true;
  }
  const auto newest = connection.query("SELECT max(name) FROM fcap_schema_migrations", wait());
  if (!newest.ok()) {
    say(Level::kError, newest.status().text());
    return true;
  }
  const std::string name(newest.value().cell(0, 0).value_or("none"));
  if (name < kNewestMigration) {
    say(Level::kError, fmt::format("the schema is at {}, and this version of fcap expects {}: run "
                                   "fcap-migrate (sql/migrate in a checkout)",
                                   name, kNewestMigration));
  } else {
    say(Level::kOk, fmt::format("the schema is at {}", name));
  }
  return true;
}

void PostgresDoctor::look_at_rules() {
  const auto rules = sources::load_from_postgres(conninfo_, kLoadingWithin);
  if (!rules.ok()) {
    say(Level::kError, fmt::format("the rules cannot be loaded: {}", rules.status().text()));
  }
  const auto segments = sources::load_segments_from_postgres(conninfo_, kLoadingWithin);
  if (!segments.ok()) {
    say(Level::kError, fmt::format("the segments cannot be loaded: {}", segments.status().text()));
  }
  if (rules.ok() && segments.ok()) say(Level::kOk, "rules and segments can be loaded");
}

}  // namespace

void check_postgres_server(const Settings& settings, Findings& findings) {
  if (settings.postgres.conninfo.empty()) {
    findings.push_back({Finding::FindingLevel::kOk, "postgres",
                        "postgres.conninfo is empty: PostgreSQL is not used"});
    return;
  }
  PostgresDoctor(conninfo_with_password(settings.postgres), findings).look();
}

}  // namespace fcap::updater
