#include "sources/pg_load.h"

#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mistakes.h"
#include "postgres/pg_copy.h"
#include "postgres/pg_version.h"
#include "rule_text/pg_rows.h"
#include "sources/rule_refresher.h"

namespace fcap::sources {
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

// Hands every row of a query to `take`, one at a time: no more than one is held as text.
template <std::size_t kColumns, typename Take>
Status for_each_row(postgres::PgConnection& connection, const postgres::PgWait& wait,
                    const std::string& select, Take take) {
  postgres::CopiedRows rows(kColumns, [&take](std::span<const rule_text::Cell> cells) {
    take(cells.first<kColumns>());
    return Status{};
  });
  return connection.copy_out("COPY (" + select + ") TO STDOUT (FORMAT binary)", wait,
                             [&rows](std::string_view message) { return rows.read(message); });
}

// Which campaigns are in which groups, in the order of the campaigns' ids, as one text: there may
// be many, and all are held until the campaigns have been read.
class Memberships {
 public:
  void add(std::string_view campaign_id, std::string_view group_id) {
    append(campaign_id);
    append(group_id);
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ == texts_.size(); }
  [[nodiscard]] std::string_view campaign_id() const noexcept { return text_at(at_); }
  [[nodiscard]] std::string_view group_id() const noexcept {
    return text_at(at_ + kLengthBytes + campaign_id().size());
  }
  void next() noexcept { at_ += 2 * kLengthBytes + campaign_id().size() + group_id().size(); }

 private:
  static constexpr std::size_t kLengthBytes = 2;
  static constexpr std::size_t kTextBytesMax = 0xFFFF;

  void append(std::string_view text) {
    const std::string_view kept = text.substr(0, kTextBytesMax);
    texts_.push_back(static_cast<char>(kept.size() & 0xFFU));
    texts_.push_back(static_cast<char>(kept.size() >> 8U));
    texts_.append(kept);
  }
  [[nodiscard]] std::string_view text_at(std::size_t at) const noexcept {
    const auto low = static_cast<unsigned char>(texts_[at]);
    const auto high = static_cast<unsigned char>(texts_[at + 1]);
    return std::string_view(texts_).substr(at + kLengthBytes, std::size_t{high} << 8U | low);
  }

  std::string texts_;
  std::size_t at_ = 0;
};

// Reads the tables, in an order that depends on the ids alone.
class TableReader {
 public:
  TableReader(postgres::PgConnection& connection, const postgres::PgWait& wait,
              rules::SpecSink& sink)
      : connection_(connection), wait_(wait), sink_(sink) {}

  Status read() {
    Status status = tell_counts();
    if (status.ok()) status = read_memberships();
    if (status.ok()) status = read_campaigns();
    if (status.ok()) status = read_rules();
    if (!status.ok()) return status;
    // With so many bad rows it is not single rows that are wrong, but the tables.
    return bad_rows_.size() > rule_count_ ? cannot_be_rules(bad_rows_) : Status{};
  }

  [[nodiscard]] std::vector<std::string> take_bad_rows() { return std::move(bad_rows_); }

  static Status cannot_be_rules(const std::vector<std::string>& rows) {
    base::Mistakes mistakes;
    for (const std::string& row : rows) mistakes.add(row);
    return Status::error(StatusCode::kCorrupt, mistakes.text("rows that cannot be rules:"));
  }

 private:
  // Vectors that grow would hold half as much again, for a moment.
  Status tell_counts() {
    Result<postgres::PgRows> rows = connection_.query(
        "SELECT count(*)::text, (count(cap_limit) + (SELECT count(*) FROM cap_rules))::text"
        " FROM campaigns",
        wait_);
    if (!rows.ok()) return rows.status();
    sink_.expect_campaigns(count_in(rows.value(), 0));
    sink_.expect_rules(count_in(rows.value(), 1));
    return {};
  }

  static std::size_t count_in(const postgres::PgRows& rows, int column) {
    const std::string_view text = rows.cell(0, column).value_or("");
    std::size_t count = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  Status read_campaigns() {
    const std::string select =
        select_statement(rule_text::kCampaignColumns, "campaigns ORDER BY id COLLATE \"C\"");
    Status status = for_each_row<rule_text::kCampaignColumns.size()>(
        connection_, wait_, select, [this](auto cells) {
          base::Mistakes mistakes;
          rule_text::CampaignRow row = rule_text::campaign_of_row(cells, mistakes);
          const bool good = is_good(mistakes);
          if (good && row.rule) add(*std::move(row.rule));
          // A campaign whose cap is wrong still counts for its advertiser.
          if (!good && row.campaign.id.empty()) return;
          add_groups(row.campaign);
          sink_.add(std::move(row.campaign));
        });
    if (status.ok()) refuse_memberships_before(std::nullopt);
    return status;
  }

  // Both tables come in the order of the campaigns' ids.
  void add_groups(Campaign& campaign) {
    refuse_memberships_before(campaign.id);
    for (; !memberships_.at_end() && memberships_.campaign_id() == campaign.id;
         memberships_.next()) {
      campaign.groups.emplace_back(memberships_.group_id());
    }
  }

  // Refuses those of campaigns that are not there.
  void refuse_memberships_before(const std::optional<std::string_view>& campaign_id) {
    for (; !memberships_.at_end() && (!campaign_id || memberships_.campaign_id() < *campaign_id);
         memberships_.next()) {
      base::Mistakes mistakes;
      rule_text::add_row_mistake(mistakes, "campaign_groups", memberships_.campaign_id(),
                                 "campaign_id", "is not in campaigns");
      (void)is_good(mistakes);
    }
  }

  Status read_memberships() {
    const std::string select = select_statement(
        rule_text::kGroupColumns,
        "campaign_groups ORDER BY campaign_id COLLATE \"C\", group_id COLLATE \"C\"");
    return for_each_row<rule_text::kGroupColumns.size()>(
        connection_, wait_, select, [this](auto cells) {
          base::Mistakes mistakes;
          const rule_text::GroupRow row = rule_text::group_of_row(cells, mistakes);
          if (is_good(mistakes)) memberships_.add(row.campaign_id, row.group_id);
        });
  }

  Status read_rules() {
    const std::string select = select_statement(
        rule_text::kRuleColumns, "cap_rules WHERE enabled IS NOT FALSE ORDER BY id COLLATE \"C\"");
    return for_each_row<rule_text::kRuleColumns.size()>(
        connection_, wait_, select, [this](auto cells) {
          base::Mistakes mistakes;
          Rule rule = rule_text::rule_of_row(cells, mistakes);
          if (is_good(mistakes)) add(std::move(rule));
        });
  }

  void add(Rule&& rule) {
    ++rule_count_;
    sink_.add(std::move(rule));
  }

  // Whether a row has no mistakes; remembers a bad one.
  bool is_good(const base::Mistakes& mistakes) {
    if (mistakes.empty()) return true;
    bad_rows_.push_back(mistakes.one_line());
    return false;
  }

  postgres::PgConnection& connection_;
  const postgres::PgWait& wait_;
  rules::SpecSink& sink_;
  Memberships memberships_;
  std::size_t rule_count_ = 0;
  std::vector<std::string> bad_rows_;
};

}  // namespace

Result<std::optional<LoadedTables>> load_if_changed(const std::string& conninfo,
                                                    const std::optional<base::TableVersion>& known,
                                                    const postgres::PgWait& wait,
                                                    rules::SpecSink& sink) {
  Result<postgres::PgConnection> connection = postgres::PgConnection::connect(conninfo, wait);
  if (!connection.ok()) return connection.status();
  if (Status status = postgres::begin_reading(connection.value(), wait); !status.ok())
    return status;
  Result<base::TableVersion> version =
      postgres::read_version(connection.value(), "rule_set_version", wait);
  if (!version.ok()) return version.status();
  std::optional<LoadedTables> loaded;
  if (version.value() != known) {
    TableReader reader(connection.value(), wait, sink);
    if (Status status = reader.read(); !status.ok()) return status;
    loaded.emplace(LoadedTables{std::move(version).value(), reader.take_bad_rows()});
  }
  // Nothing was written; a connection that breaks here has still given its answer.
  (void)connection.value().query("COMMIT", wait).ok();
  return loaded;
}

Result<RuleSetSpec> load_from_postgres(const std::string& conninfo, milliseconds timeout,
                                       std::vector<std::string>* quarantined) {
  rules::PlainSpecSink sink;
  Result<std::optional<LoadedTables>> loaded =
      load_if_changed(conninfo, std::nullopt, {steady_clock::now() + timeout}, sink);
  if (!loaded.ok()) return loaded.status();
  std::vector<std::string>& bad_rows = loaded.value()->quarantined;
  if (quarantined != nullptr) {
    *quarantined = std::move(bad_rows);
  } else if (!bad_rows.empty()) {
    return TableReader::cannot_be_rules(bad_rows);
  }
  sink.spec.version = loaded.value()->version.version;
  return std::move(sink.spec);
}

}  // namespace fcap::sources
