#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fcap::rules {

/// A change of a zone's offset from UTC.
struct OffsetChange {
  std::int64_t at_s = 0;      ///< seconds since 1970-01-01T00:00:00Z
  std::int64_t offset_s = 0;  ///< local time minus UTC, from then on
};

/// The offset changes that a POSIX TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3" foresees for the
/// years [first_year, last_year], ascending. Empty where the string has no daylight-saving time.
/// None where it cannot be read.
///
/// Zone files end in such a string: the rule for all the years behind their last listed change.
///
/// The date library reads what the files list and not this rule; cctz would follow it, but would be
/// one more library in the process of every host, for what is needed once per rule set.
[[nodiscard]] std::optional<std::vector<OffsetChange>> foreseen_changes(std::string_view posix_tz,
                                                                        std::int64_t first_year,
                                                                        std::int64_t last_year);

}  // namespace fcap::rules
