#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fcap/rule.h>

#include "base/mistakes.h"

/// Rows of the tables in sql/, as PostgreSQL prints them, to rules and campaigns. Pure. What the
/// tables' constraints promise is checked again: constraints can be dropped, and a row that is
/// misread caps the wrong people.
namespace fcap::rule_text {

/// What a column holds; none is NULL.
using Cell = std::optional<std::string_view>;

/// The columns that the functions below take, in this order.
inline constexpr std::array<std::string_view, 16> kRuleColumns{
    "id",        "scope",       "target",         "event_type",
    "cap_limit", "window_kind", "window_seconds", "calendar_unit",
    "time_zone", "week_start",  "segment",        "starts_at",
    "ends_at",   "mode",        "enforcement",    "enabled"};
inline constexpr std::string_view kIsDeletedColumn =
    "coalesce(deleted_at::timestamptz <= now(), false)";
inline constexpr std::array<std::string_view, 6> kCampaignColumns{
    "id", "advertiser_id", "cap_limit", "window_seconds", "deleted_at", kIsDeletedColumn};
inline constexpr std::array<std::string_view, 2> kGroupColumns{"campaign_id", "group_id"};

/// A row of cap_rules. Instants must have been printed with ISO dates in UTC.
Rule rule_of_row(std::span<const Cell, kRuleColumns.size()> row, base::Mistakes& mistakes);

struct CampaignRow {
  Campaign campaign;
  /// The rule that its cap_limit makes; none where it has no cap of its own.
  std::optional<Rule> rule;
};

/// A row of campaigns.
CampaignRow campaign_of_row(std::span<const Cell, kCampaignColumns.size()> row,
                            base::Mistakes& mistakes);

struct GroupRow {
  std::string campaign_id;
  std::string group_id;
};

/// A row of campaign_groups.
GroupRow group_of_row(std::span<const Cell, kGroupColumns.size()> row, base::Mistakes& mistakes);

/// Reports a row that does not fit the others.
void add_row_mistake(base::Mistakes& mistakes, std::string_view table, std::string_view id,
                     std::string_view column, std::string_view what);

}  // namespace fcap::rule_text
