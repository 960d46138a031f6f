#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fcap::command_line {

/// The name in `known` that `name` is most like, or empty when none is near.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       const std::vector<std::string>& known);

}  // namespace fcap::command_line
