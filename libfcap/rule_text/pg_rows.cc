#include "rule_text/pg_rows.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include <xxhash.h>

#include "base/time_text.h"
#include "ledger/ids.h"
#include "rule_text/rule_words.h"

namespace fcap::rule_text {
namespace {

using ledger::kIdBytesMax;
using std::chrono::milliseconds;

constexpr std::string_view kCampaignRulePrefix = "campaign:";

// Takes one row's cells by the column's name, and reports what is wrong with them.
class RowReader {
 public:
  RowReader(std::string_view table, std::span<const std::string_view> columns,
            std::span<const Cell> cells, base::Mistakes& mistakes)
      : table_(table), columns_(columns), cells_(cells), mistakes_(mistakes) {}

  void wrong(std::string_view column, std::string_view what) {
    add_row_mistake(mistakes_, table_, cells_[0].value_or("NULL"), column, what);
  }

  [[nodiscard]] Cell cell(std::string_view column) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == column) return cells_[i];
    }
    return std::nullopt;
  }

  std::optional<std::string> id(std::string_view column, bool required = false) {
    const Cell given = cell(column);
    if (!given) {
      if (required) wrong(column, "is NULL");
      return std::nullopt;
    }
    if (given->empty() || given->size() > kIdBytesMax) wrong(column, "must have 1 to 256 bytes");
    return std::string(*given);
  }

  template <typename Words, typename T>
  void word(std::string_view column, const Words& words, T& value) {
    const Cell given = cell(column);
    if (!given) return wrong(column, "is NULL");
    if (const auto known = value_of(words, *given)) {
      value = *known;
    } else {
      wrong(column, "must be " + one_of(words));
    }
  }

  std::optional<std::uint32_t> limit(std::string_view column) {
    const Cell given = cell(column);
    if (!given) return std::nullopt;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), value);
    if (error != std::errc{} || end != given->data() + given->size()) {
      wrong(column, "must be a whole number from 0 to 4294967295");
    }
    return value;
  }

  // Seconds with up to three decimals.
  milliseconds seconds(std::string_view column) {
    const Cell given = cell(column);
    if (!given) {
      wrong(column, "is NULL");
      return milliseconds{0};
    }
    const std::size_t point = given->find('.');
    const std::string_view whole_text = given->substr(0, point);
    std::string_view fraction =
        point == std::string_view::npos ? std::string_view{} : given->substr(point + 1);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    std::string digits(whole_text);
    digits.append(fraction);
    digits.append(fraction.size() < 3 ? 3 - fraction.size() : 0, '0');
    std::int64_t ms = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ms);
    if (error != std::errc{} || end != digits.data() + digits.size() || fraction.size() > 3 ||
        ms <= 0) {
      wrong(column, "must be a number of seconds above zero, to the millisecond");
    }
    return milliseconds{ms};
  }

  std::optional<Instant> instant(std::string_view column) {
    const Cell given = cell(column);
    if (!given) return std::nullopt;
    std::string text(*given);
    // ISO dates in UTC end in "+00", which RFC 3339 calls "Z".
    if (text.ends_with("+00")) text.replace(text.size() - 3, 3, "Z");
    const std::optional<Instant> instant = base::parse_instant(text);
    if (!instant) wrong(column, "must be a timestamptz in the years 0000 to 9999");
    return instant;
  }

  void must_be_null(std::string_view column, std::string_view why) {
    if (cell(column)) wrong(column, std::string("must be NULL ").append(why));
  }

 private:
  std::string_view table_;
  std::span<const std::string_view> columns_;
  std::span<const Cell> cells_;
  base::Mistakes& mistakes_;
};

void read_target(RowReader& row, Rule& rule) {
  if (rule.scope == Scope::kUser) {
    row.must_be_null("target", "for the user scope");
  } else {
    rule.target = row.id("target", true).value_or("");
  }
}

void read_window(RowReader& row, Window& window) {
  row.word("window_kind", kWindowKindWords, window.kind);
  const bool has_length =
      window.kind == Window::Kind::kSliding || window.kind == Window::Kind::kFixed;
  if (has_length) {
    window.length = row.seconds("window_seconds");
  } else {
    row.must_be_null("window_seconds", "for this window_kind");
  }
  if (window.kind != Window::Kind::kCalendar) {
    row.must_be_null("calendar_unit", "for this window_kind");
    row.must_be_null("time_zone", "for this window_kind");
    row.must_be_null("week_start", "for this window_kind");
    return;
  }
  row.word("calendar_unit", kCalendarUnitWords, window.unit);
  if (auto zone = row.id("time_zone")) window.time_zone = *std::move(zone);
  if (row.cell("week_start")) {
    // Units other than weeks have no use for it.
    std::chrono::weekday week_start = window.week_start;
    row.word("week_start", kWeekdayWords, week_start);
    if (window.unit == CalendarUnit::kWeek) window.week_start = week_start;
  }
}

// The id of a campaign's own rule. A rule's id may be no longer than any other id, so a campaign
// with nearly the longest id there is goes by its hash.
std::string campaign_rule_id(std::string_view campaign_id) {
  std::string id(kCampaignRulePrefix);
  if (id.size() + campaign_id.size() <= kIdBytesMax) return id.append(campaign_id);
  return id.append("#").append(std::to_string(XXH3_64bits(campaign_id.data(), campaign_id.size())));
}

}  // namespace

void add_row_mistake(base::Mistakes& mistakes, std::string_view table, std::string_view id,
                     std::string_view column, std::string_view what) {
  std::string line(table);
  line.append(" \"").append(id).append("\", ").append(column).append(": ").append(what);
  mistakes.add(std::move(line));
}

Rule rule_of_row(std::span<const Cell, kRuleColumns.size()> cells, base::Mistakes& mistakes) {
  RowReader row("cap_rules", kRuleColumns, cells, mistakes);
  Rule rule;
  rule.id = row.id("id", true).value_or("");
  if (rule.id.starts_with(kCampaignRulePrefix)) {
    row.wrong("id", "must not begin with campaign:, which is for the rules made from campaigns");
  }
  row.word("scope", kScopeWords, rule.scope);
  read_target(row, rule);
  row.word("event_type", kEventTypeWords, rule.event_type);
  rule.limit = row.limit("cap_limit");
  read_window(row, rule.window);
  rule.segment = row.id("segment");
  rule.start = row.instant("starts_at");
  rule.end = row.instant("ends_at");
  if (rule.start && rule.end && *rule.end <= *rule.start) {
    row.wrong("ends_at", "must be later than starts_at");
  }
  row.word("mode", kModeWords, rule.mode);
  row.word("enforcement", kEnforcementWords, rule.enforcement);
  if (!row.cell("enabled")) row.wrong("enabled", "is NULL");
  return rule;
}

CampaignRow campaign_of_row(std::span<const Cell, kCampaignColumns.size()> cells,
                            base::Mistakes& mistakes) {
  RowReader row("campaigns", kCampaignColumns, cells, mistakes);
  CampaignRow out;
  Campaign& campaign = out.campaign;
  campaign.id = row.id("id", true).value_or("");
  campaign.advertiser_id = row.id("advertiser_id").value_or("");
  campaign.deleted = row.cell(kIsDeletedColumn) == "true";
  const std::optional<std::uint32_t> limit = row.limit("cap_limit");
  if (!limit) return out;
  const milliseconds length = row.seconds("window_seconds");
  if (campaign.deleted) return out;
  Rule& rule = out.rule.emplace();
  rule.id = campaign_rule_id(campaign.id);
  rule.scope = Scope::kCampaign;
  rule.target = campaign.id;
  rule.limit = limit;
  rule.window.length = length;
  // Deleted in the future: the cap is in force until then.
  if (row.cell("deleted_at") != "infinity") rule.end = row.instant("deleted_at");
  return out;
}

GroupRow group_of_row(std::span<const Cell, kGroupColumns.size()> cells, base::Mistakes& mistakes) {
  RowReader row("campaign_groups", kGroupColumns, cells, mistakes);
  return {row.id("campaign_id", true).value_or(""), row.id("group_id", true).value_or("")};
}

}  // namespace fcap::rule_text
