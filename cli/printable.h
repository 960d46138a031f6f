#pragma once

#include <string>
#include <string_view>

namespace fcap::cli {

/// An id for a terminal: control characters, which could move the cursor or hide text, become
/// \xNN. Everything else stays as it is.
[[nodiscard]] std::string printable(std::string_view id);

}  // namespace fcap::cli
