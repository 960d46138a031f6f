#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "updater/settings/fields.h"

namespace fcap::updater {

/// What is wrong with a value, for people; nothing when it was taken.
using ValueMistake = std::optional<std::string>;

/// Sets a field from a variable or a flag. Lists are separated by commas; a map is a JSON object or
/// one "name=value", which is added.
[[nodiscard]] ValueMistake set_from_text(const Field& field, std::string_view text,
                                         Settings& settings);

/// Sets a field from the configuration file. A map replaces what was there.
[[nodiscard]] ValueMistake set_from_json(const Field& field, const nlohmann::json& value,
                                         Settings& settings);

/// A field's value as the configuration file would have it; a secret is "(set)" or "".
[[nodiscard]] nlohmann::ordered_json value_as_json(const Field& field, const Settings& settings);

/// "500", "64KiB", "1MiB", "2GiB".
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace fcap::updater
