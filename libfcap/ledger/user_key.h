#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fcap::ledger {

/// Appends the key of a user's record: "<prefix>:{<user id>}". The braces put side keys in the same
/// slot. Nothing else knows this form; docs/keys.md describes it.
inline void append_user_key(std::string_view prefix, std::string_view user_id, std::string& out) {
  out.append(prefix).append(":{").append(user_id).append("}");
}

/// Writes the same to `room`, which the key must fit into, without taking memory.
inline std::string_view user_key(std::string_view prefix, std::string_view user_id,
                                 std::span<char> room) noexcept {
  char* end = room.data();
  for (const std::string_view part :
       {prefix, std::string_view(":{"), user_id, std::string_view("}")}) {
    end = std::copy(part.begin(), part.end(), end);
  }
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

/// What the key of every record begins with.
inline std::string user_key_begin(std::string_view prefix) {
  return std::string(prefix) + ":{";
}

/// Replaces the contents of `out` with the key of a user's record.
inline void user_key(std::string_view prefix, std::string_view user_id, std::string& out) {
  out.clear();
  out.reserve(prefix.size() + user_id.size() + 3);
  append_user_key(prefix, user_id, out);
}

/// The user id of a key with this prefix.
inline std::string_view user_of_key(std::string_view prefix, std::string_view key) noexcept {
  return key.substr(prefix.size() + 2, key.size() - prefix.size() - 3);
}

/// For SCAN: the keys of all records, and perhaps others.
inline std::string user_key_pattern(std::string_view prefix) {
  return user_key_begin(prefix) + "*";
}

}  // namespace fcap::ledger
