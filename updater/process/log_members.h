#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fcap::updater {

/// What a line of the log is about, as far as its text says so in the words that all parts use:
/// "partition 3", "offset 17", and an error code of Redis ("NOPERM …" behind a colon or a bracket).
/// The members of a JSON line come from here, so that they can never differ from its text.
struct LogMembers {
  std::optional<std::int64_t> partition;
  std::optional<std::int64_t> offset;
  std::string_view code;  ///< empty: none
};
[[nodiscard]] LogMembers log_members(std::string_view text) noexcept;

}  // namespace fcap::updater
