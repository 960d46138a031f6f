#include "sources/pg_status.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <unistd.h>

namespace fcap::sources {
namespace {

constexpr std::chrono::minutes kToldEvery{5};

// program@host:pid
std::string name_of_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(program_invocation_short_name) + "@" + host.data() + ":" +
         std::to_string(::getpid());
}

// Text as an SQL expression: in hexadecimal, so that no encoding makes anything else of it.
std::string text_expression(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.empty()) return "NULL";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 0xFU];
  }
  return "convert_from(decode('" + hex + "', 'hex'), 'UTF8')";
}

std::string call_of(const RefreshState& state) {
  std::string quarantined;
  for (const std::string& why : state.quarantined) quarantined += why + "\n";
  if (state.quarantined_count > state.quarantined.size()) {
    quarantined +=
        "and " + std::to_string(state.quarantined_count - state.quarantined.size()) + " more\n";
  }
  const std::string version = state.reloads == 0 ? "NULL" : std::to_string(state.version);
  return "SELECT fcap_report_rules(" + text_expression(name_of_process()) + ", " + version + ", " +
         std::to_string(state.rule_count) + ", " + text_expression(quarantined) + ", " +
         text_expression(state.last_error) + ")";
}

bool is_true(const Result<postgres::PgRows>& rows) {
  return rows.ok() && rows.value().count() == 1 && rows.value().cell(0, 0) == "t";
}

}  // namespace

void StatusReporter::report(const RefreshState& state, const postgres::PgWait& wait) {
  std::string call = call_of(state);
  if (told_at_ && call == told_ && Clock::now() - *told_at_ < kToldEvery) return;
  // Noted before it is known whether it works: a database that refuses must not be asked again and
  // again.
  told_ = std::move(call);
  told_at_ = Clock::now();
  Result<postgres::PgConnection> connection = postgres::PgConnection::connect(conninfo_, wait);
  if (!connection.ok()) {
    told_at_.reset();
    return;
  }
  const bool can_be_told = is_true(connection.value().query(
      "SELECT has_function_privilege(p, 'EXECUTE') AND NOT pg_is_in_recovery()"
      " AND NOT current_setting('transaction_read_only')::boolean"
      " FROM to_regprocedure('fcap_report_rules(text,bigint,bigint,text,text)') p"
      " WHERE p IS NOT NULL",
      wait));
  if (can_be_told) (void)connection.value().query(told_, wait).ok();
}

Result<std::vector<RuleSetStatus>> read_rule_set_status(const std::string& conninfo,
                                                        const postgres::PgWait& wait) {
  Result<postgres::PgConnection> connection = postgres::PgConnection::connect(conninfo, wait);
  if (!connection.ok()) return connection.status();
  std::vector<RuleSetStatus> all;
  if (!is_true(connection.value().query(
          "SELECT has_table_privilege(t, 'SELECT') FROM to_regclass('rule_set_status') t"
          " WHERE t IS NOT NULL",
          wait))) {
    return all;
  }
  const Result<postgres::PgRows> rows = connection.value().query(
      "SELECT process, version::text, refused_why FROM rule_set_status"
      " WHERE at > now() - interval '15 minutes' ORDER BY process COLLATE \"C\"",
      wait);
  if (!rows.ok()) return rows.status();
  for (int i = 0; i < rows.value().count(); ++i) {
    RuleSetStatus& status = all.emplace_back();
    status.process = rows.value().cell(i, 0).value_or("");
    const std::string_view version = rows.value().cell(i, 1).value_or("");
    (void)std::from_chars(version.data(), version.data() + version.size(), status.version);
    status.refused_why = rows.value().cell(i, 2).value_or("");
  }
  return all;
}

}  // namespace fcap::sources
