#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fcap::bench {

using Json = nlohmann::ordered_json;

/// Merges what the parts found out (bench/README.md) into one document: `about` (machine, versions,
/// date), each part's numbers at the top level, "tables", "plots", and "missing" with a reason for
/// each target that is null. `not_run` says why of a part. Throws std::runtime_error where two
/// parts claim one name.
[[nodiscard]] Json merge_parts(const Json& about, const std::vector<Json>& parts,
                               const std::map<std::string, std::string>& not_run);

/// A number as people read it: "1,234.5"; a dash for null.
[[nodiscard]] std::string number_text(const Json& number, int digits);

}  // namespace fcap::bench
