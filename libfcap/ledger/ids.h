#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fcap::ledger {

/// Ids are at most this long; longer ones are refused at every door.
inline constexpr std::size_t kIdBytesMax = 256;
[[nodiscard]] inline bool is_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= kIdBytesMax;
}

/// As much of an id as shows that it is too long: what is copied before it is looked at.
[[nodiscard]] inline std::string_view start_of(std::string_view id) noexcept {
  return id.substr(0, kIdBytesMax + 1);
}

/// What a campaign or creative id is in a record: the low 48 bits of XXH3-64 (seed 0) of its bytes.
/// Frozen: records on disk depend on it. No id (an empty string) is 0; an id whose hash is 0
/// becomes 1.
[[nodiscard]] std::uint64_t id_hash(std::string_view id) noexcept;

/// What an event's id is in a record: the low 32 bits of XXH3-64 (seed 0) of its bytes.
[[nodiscard]] std::uint32_t fingerprint(std::string_view event_id) noexcept;

}  // namespace fcap::ledger
