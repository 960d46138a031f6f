#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fcap::segments {

/// The number that an id is, if it is written as that number is always written: no sign, no leading
/// zero, no blank. Anything else is a name, however much it looks like a number.
[[nodiscard]] inline std::optional<std::uint64_t> canonical_decimal(std::string_view id) noexcept {
  if (id.empty() || (id.front() == '0' && id.size() > 1)) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = id.data() + id.size();
  const auto parsed = std::from_chars(id.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return value;
}

}  // namespace fcap::segments
