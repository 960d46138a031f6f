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

}  // namespace fcap::ledger
