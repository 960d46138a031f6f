#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fcap/status.h>
#include <fcap/time.h>

namespace fcap::cli {

/// RFC 3339, or whole milliseconds since 1970. `setting` is what the status names.
Result<Instant> parse_at(std::string_view text, std::string_view setting);

/// What to say where `text`, which parse_at() takes for milliseconds, looks like seconds; empty:
/// nothing. A warning only: 1970 may be meant.
[[nodiscard]] std::string seconds_warning(std::string_view text, std::string_view setting);

/// A length of time such as "5s" or "32d".
Result<std::chrono::milliseconds> parse_duration(std::string_view text, std::string_view setting);

/// "1 entry", "3 entries".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one,
                                  std::string_view several);

}  // namespace fcap::cli
