#include "config/pg_load.h"

#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "config/mistakes.h"
#include "config/pg_rows.h"
#include "config/rule_refresher.h"

namespace fcap::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Rows a round trip: bounds the memory for rows that are still text.
constexpr int kFetchRows = 5000;

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

/// Hands every row of a query to `take`, some thousands at a time.
template <std::size_t kColumns, typename Take>
Status for_each_row(PgConnection& connection, const PgWait& wait, const std::string& select,
                    Take take) {
  Result<PgRows> rows = connection.query("DECLARE fcap_rows NO SCROLL CURSOR FOR " + select, wait);
  if (!rows.ok()) return rows.status();
  const std::string fetch = "FETCH " + std::to_string(kFetchRows) + " FROM fcap_rows";
  do {
    rows = connection.query(fetch, wait);
    if (!rows.ok()) return rows.status();
    if (rows.value().columns() != static_cast<int>(kColumns)) {
      return Status::error(StatusCode::kInternal, "PostgreSQL: unexpected number of columns");
    }
    std::array<Cell, kColumns> cells;
    for (int row = 0; row < rows.value().count(); ++row) {
      for (std::size_t i = 0; i < kColumns; ++i) {
        cells[i] = rows.value().cell(row, static_cast<int>(i));
      }
      take(std::span<const Cell, kColumns>(cells));
    }
  } while (rows.value().count() == kFetchRows);
  return connection.query("CLOSE fcap_rows", wait).status();
}

/// Reads the tables into a spec, in an order that depends on the ids alone.
class TableReader {
 public:
  TableReader(PgConnection& connection, const PgWait& wait)
      : connection_(connection), wait_(wait) {}

  Result<RuleSetSpec> read() {
    Status status = read_campaigns();
    if (status.ok()) status = read_groups();
    if (status.ok()) status = read_rules();
    if (!status.ok()) return status;
    if (mistakes_.empty()) return std::move(spec_);
    return Status::error(StatusCode::kCorrupt, mistakes_.text("rows that cannot be rules:"));
  }

 private:
  Status read_campaigns() {
    const std::string select =
        select_statement(kCampaignColumns, "campaigns ORDER BY id COLLATE \"C\"");
    return for_each_row<kCampaignColumns.size()>(connection_, wait_, select, [this](auto cells) {
      CampaignRow row = campaign_of_row(cells, mistakes_);
      if (row.rule) spec_.rules.push_back(*std::move(row.rule));
      campaign_index_.emplace(row.campaign.id, spec_.campaigns.size());
      spec_.campaigns.push_back(std::move(row.campaign));
    });
  }

  Status read_groups() {
    const std::string select = select_statement(
        kGroupColumns,
        "campaign_groups ORDER BY campaign_id COLLATE \"C\", group_id COLLATE \"C\"");
    return for_each_row<kGroupColumns.size()>(connection_, wait_, select, [this](auto cells) {
      GroupRow row = group_of_row(cells, mistakes_);
      const auto campaign = campaign_index_.find(row.campaign_id);
      if (campaign == campaign_index_.end()) {
        return add_row_mistake(mistakes_, "campaign_groups", row.campaign_id, "campaign_id",
                               "is not in campaigns");
      }
      spec_.campaigns[campaign->second].groups.push_back(std::move(row.group_id));
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
  std::unordered_map<std::string, std::size_t> campaign_index_;
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
