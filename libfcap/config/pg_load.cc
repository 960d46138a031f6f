#include "config/pg_load.h"

#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "config/mistakes.h"
#include "config/pg_copy.h"
#include "config/pg_rows.h"
#include "config/rule_refresher.h"

namespace fcap::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

template <std::size_t kColumns>
std::string select_statement(const std::array<std::string_view, kColumns>& columns,
                             std::string_view rest) {
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (column != columns.front()) sql += ", ";
    sql.append(column).append("::text");
  }
  return sql.append(" FROM ").append(rest);
}

/// Hands every row of a query to `take`, one at a time: no more than one is held as text.
template <std::size_t kColumns, typename Take>
Status for_each_row(PgConnection& connection, const PgWait& wait, const std::string& select,
                    Take take) {
  CopiedRows rows(kColumns, [&take](std::span<const Cell> cells) {
    take(cells.first<kColumns>());
    return Status{};
  });
  return connection.copy_out("COPY (" + select + ") TO STDOUT (FORMAT binary)", wait,
                             [&rows](std::string_view message) { return rows.take(message); });
}

/// Reads the tables into a spec, in an order that depends on the ids alone.
class TableReader {
 public:
  TableReader(PgConnection& connection, const PgWait& wait)
      : connection_(connection), wait_(wait) {}

  Result<RuleSetSpec> read() {
    Status status = make_room();
    if (status.ok()) status = read_campaigns();
    if (status.ok()) status = read_groups();
    if (status.ok()) status = read_rules();
    if (!status.ok()) return status;
    if (mistakes_.empty()) return std::move(spec_);
    return Status::error(StatusCode::kCorrupt, mistakes_.text("rows that cannot be rules:"));
  }

 private:
  /// Vectors that grow would hold half as much again, for a moment.
  Status make_room() {
    Result<PgRows> rows = connection_.query(
        "SELECT count(*)::text, (count(cap_limit) + (SELECT count(*) FROM cap_rules))::text"
        " FROM campaigns",
        wait_);
    if (!rows.ok()) return rows.status();
    spec_.campaigns.reserve(count_in(rows.value(), 0));
    spec_.rules.reserve(count_in(rows.value(), 1));
    return {};
  }

  static std::size_t count_in(const PgRows& rows, int column) {
    const std::string_view text = rows.cell(0, column).value_or("");
    std::size_t count = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  Status read_campaigns() {
    const std::string select =
        select_statement(kCampaignColumns, "campaigns ORDER BY id COLLATE \"C\"");
    return for_each_row<kCampaignColumns.size()>(connection_, wait_, select, [this](auto cells) {
      CampaignRow row = campaign_of_row(cells, mistakes_);
      if (row.rule) spec_.rules.push_back(*std::move(row.rule));
      spec_.campaigns.push_back(std::move(row.campaign));
    });
  }

  Status read_groups() {
    const std::string select = select_statement(
        kGroupColumns,
        "campaign_groups ORDER BY campaign_id COLLATE \"C\", group_id COLLATE \"C\"");
    std::size_t at = 0;
    return for_each_row<kGroupColumns.size()>(connection_, wait_, select, [&](auto cells) {
      GroupRow row = group_of_row(cells, mistakes_);
      // Both tables come in the order of the campaigns' ids.
      while (at < spec_.campaigns.size() && spec_.campaigns[at].id < row.campaign_id) ++at;
      if (at == spec_.campaigns.size() || spec_.campaigns[at].id != row.campaign_id) {
        return add_row_mistake(mistakes_, "campaign_groups", row.campaign_id, "campaign_id",
                               "is not in campaigns");
      }
      spec_.campaigns[at].groups.push_back(std::move(row.group_id));
    });
  }

  Status read_rules() {
    const std::string select = select_statement(
        kRuleColumns, "cap_rules WHERE enabled IS NOT FALSE ORDER BY id COLLATE \"C\"");
    return for_each_row<kRuleColumns.size()>(connection_, wait_, select, [this](auto cells) {
      spec_.rules.push_back(rule_of_row(cells, mistakes_));
    });
  }

  PgConnection& connection_;
  const PgWait& wait_;
  RuleSetSpec spec_;
  Mistakes mistakes_;
};

}  // namespace

Result<std::optional<LoadedRules>> load_if_changed(const std::string& conninfo,
                                                   const std::optional<TableVersion>& known,
                                                   const PgWait& wait) {
  Result<PgConnection> connection = PgConnection::connect(conninfo, wait);
  if (!connection.ok()) return connection.status();
  if (Status status = begin_reading(connection.value(), wait); !status.ok()) return status;
  Result<TableVersion> version = read_version(connection.value(), "rule_set_version", wait);
  if (!version.ok()) return version.status();
  std::optional<LoadedRules> loaded;
  if (version.value() != known) {
    Result<RuleSetSpec> spec = TableReader(connection.value(), wait).read();
    if (!spec.ok()) return spec.status();
    spec.value().version = version.value().version;
    loaded.emplace(LoadedRules{std::move(spec).value(), std::move(version).value()});
  }
  // Nothing was written; a connection that breaks here has still given its answer.
  (void)connection.value().query("COMMIT", wait).ok();
  return loaded;
}

Result<RuleSetSpec> load_from_postgres(const std::string& conninfo, milliseconds timeout) {
  Result<std::optional<LoadedRules>> loaded =
      load_if_changed(conninfo, std::nullopt, {steady_clock::now() + timeout});
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded.value()->spec);
}

}  // namespace fcap::config
