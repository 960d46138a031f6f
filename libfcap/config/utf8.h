#pragma once

#include <string_view>

namespace fcap::config {

/// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates). A database in
/// SQL_ASCII hands out whatever it was given, and JSON cannot hold it.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

}  // namespace fcap::config
