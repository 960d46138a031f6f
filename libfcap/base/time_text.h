#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/time.h>

namespace fcap::base {

/// A length of time as people write it: a whole number and one of ms, s, m, h, d ("24h", "90s").
/// A "d" is 24 hours. Nothing but a number above zero that fits is accepted.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_length(std::string_view text);

/// As settings are written: zero ("0ms") and zeros in front are accepted as well.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_length_or_zero(std::string_view text);

/// A length with the largest unit that leaves no remainder: 90 s is "90s", 120 s is "2m"; zero is
/// "0ms".
[[nodiscard]] std::string format_length(std::chrono::milliseconds length);

/// For people, in the two largest units that matter: "3 h 12 min", "2 d", "450 ms".
[[nodiscard]] std::string spoken_length(std::chrono::milliseconds length);

/// An instant in RFC 3339: "2026-03-01T00:00:00Z", with an optional fraction (finer than
/// milliseconds is cut off) and "Z" or an offset such as "+01:00". Years 0000 to 9999.
[[nodiscard]] std::optional<Instant> parse_instant(std::string_view text);

/// The same in UTC, with three decimals where the milliseconds are not zero. Instants outside the
/// years 0000 to 9999 are written as the nearest one inside.
[[nodiscard]] std::string format_instant(Instant instant);

/// The same by clocks that are this far ahead of UTC (whole minutes; the rest is cut off):
/// "2026-03-01T01:00:00+01:00".
[[nodiscard]] std::string format_instant(Instant instant, std::chrono::milliseconds offset);

}  // namespace fcap::base
