#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fcap::redis {

/// One reply of a server, decoded. Views are valid only during the call that receives it.
struct Reply {
  enum class Kind : std::uint8_t { kNil, kInteger, kString, kStatus, kError, kArray, kOversized };
  Kind kind = Kind::kNil;
  std::int64_t integer = 0;  ///< kOversized: how many bytes the string has
  /// String, status or error; an error without the arguments of the command that Redis quotes.
  std::string_view text = {};
  std::span<const Reply> elements = {};
};

}  // namespace fcap::redis
