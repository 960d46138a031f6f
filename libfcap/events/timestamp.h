#pragma once

#include <optional>
#include <string_view>

#include <fcap/time.h>

namespace fcap::events {

/// Whether `token` is a number by JSON's grammar, whatever its size.
[[nodiscard]] bool is_json_number(std::string_view token) noexcept;

/// A JSON number as an instant: seconds up to and including 1e11, milliseconds above; rounded down
/// to whole milliseconds, exactly (no floating point, so 1700000000.123 is …123 ms). None when it
/// is not above zero, rounds down to zero, or is 1e18 ms or more.
[[nodiscard]] std::optional<Instant> parse_timestamp(std::string_view json_number) noexcept;

}  // namespace fcap::events
