#include "cli/instants.h"

#include <charconv>
#include <optional>

#include "base/clock.h"
#include "base/time_text.h"

namespace fcap::cli {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<Instant> parse_at(std::string_view text, std::string_view setting) {
  if (text == "now") return base::wall_now();
  if (text == "yesterday") return base::wall_now() - std::chrono::days{1};
  if (text.starts_with('-')) {
    if (const auto ago = base::parse_length(text.substr(1))) return base::wall_now() - *ago;
  }
  if (const auto ms = whole_number(text)) return instant_from_ms(*ms);
  if (const auto instant = base::parse_instant(text)) return *instant;
  return Status::error(StatusCode::kInvalidArgument,
                       std::string(setting) + ": \"" + std::string(text) +
                           "\" must be one of RFC 3339 (2026-03-01T14:03:00Z), milliseconds since "
                           "1970, a time ago (-90m, -1h, -7d), now, yesterday");
}

std::string seconds_warning(std::string_view text, std::string_view setting) {
  // Up to here a number in an event is seconds.
  constexpr std::int64_t kSecondsMax = 100'000'000'000;
  const auto number = whole_number(text);
  if (!number || *number <= 0 || *number > kSecondsMax) return {};
  return std::string(setting) + ": " + std::string(text) + " is taken as milliseconds, " +
         base::format_instant(instant_from_ms(*number)) + "; are seconds meant?";
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text, std::string_view setting) {
  if (const auto length = base::parse_length(text)) return *length;
  return Status::error(StatusCode::kInvalidArgument,
                       std::string(setting) + ": \"" + std::string(text) +
                           "\" is not a length of time such as 500ms, 5s, 90m, 24h or 32d");
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view several) {
  return std::to_string(count).append(" ").append(count == 1 ? one : several);
}

}  // namespace fcap::cli
