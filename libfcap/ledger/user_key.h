#pragma once

#include <string>
#include <string_view>

namespace fcap::ledger {

/// The key of a user's record: "<prefix>:{<user id>}". The braces put side keys in the same slot.
inline void user_key(std::string_view prefix, std::string_view user_id, std::string& out) {
  out.clear();
  out.reserve(prefix.size() + user_id.size() + 3);
  out.append(prefix).append(":{").append(user_id).append("}");
}

/// The user id in a key that user_key() has made with a prefix of that length.
[[nodiscard]] inline std::string_view user_of_key(std::string_view key,
                                                  std::size_t prefix_bytes) noexcept {
  return key.substr(prefix_bytes + 2, key.size() - prefix_bytes - 3);
}

}  // namespace fcap::ledger
