#pragma once

#include <nlohmann/json_fwd.hpp>

#include <fcap/explain.h>

namespace fcap::explanation {

/// The object that explanation_json() prints.
[[nodiscard]] nlohmann::ordered_json json_of(const Explanation& explanation);

}  // namespace fcap::explanation
