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
/// The date library reads what the files list and not this rule. cctz follows the rule and would
/// replace both that library and this reader, but not in version 2.3, which Debian 12 has: it is
/// right only about files that list the changes up to 2037, as Debian's do. In slim files, which
/// zic writes by default, it takes the last two listed changes for those of the rule. It then
/// refuses zones such as America/Nuuk, shows Europe/Lisbon an hour ahead in every winter since
/// 1996, and complains to the host's standard error. Version 2.4 reads slim files correctly.
[[nodiscard]] std::optional<std::vector<OffsetChange>> foreseen_changes(std::string_view posix_tz,
                                                                        std::int64_t first_year,
                                                                        std::int64_t last_year);

}  // namespace fcap::rules
