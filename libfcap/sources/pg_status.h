#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcap/status.h>

#include "postgres/pg_connection.h"
#include "sources/rule_refresher.h"

/// The table rule_set_status: which process runs which version of the rules, and why not a newer
/// one.
namespace fcap::sources {

/// Writes this process's row, through fcap_report_rules(): at once when something has changed, and
/// again every few minutes. A database without the function, a role without the right to it and a
/// standby are left alone.
///
/// Not thread-safe.
class StatusReporter {
 public:
  explicit StatusReporter(std::string conninfo) : conninfo_(std::move(conninfo)) {}

  void report(const RefreshState& state, const postgres::PgWait& wait);

 private:
  using Clock = std::chrono::steady_clock;

  std::string conninfo_;
  std::string told_;
  std::optional<Clock::time_point> told_at_;
};

/// A row of the table.
struct RuleSetStatus {
  std::string process;
  std::uint64_t version = 0;  ///< 0: it has no rules
  std::string refused_why;
};

/// What the processes have said within the last quarter of an hour. Empty where there is no such
/// table, or this role may not read it.
Result<std::vector<RuleSetStatus>> read_rule_set_status(const std::string& conninfo,
                                                        const postgres::PgWait& wait);

}  // namespace fcap::sources
