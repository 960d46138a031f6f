#pragma once

#include <string>

#include "updater/settings/load_settings.h"

namespace fcap::updater {

/// docs/configuration.md.
[[nodiscard]] std::string configuration_reference();

/// A configuration file with every setting, its default and its text. Loading it changes nothing.
[[nodiscard]] std::string sample_configuration();

/// What is in effect, secrets masked: one line per setting with its origin, or one JSON object with
/// the members "settings" (in the configuration file's form) and "origins".
[[nodiscard]] std::string effective_configuration(const LoadedSettings& loaded, bool json);

}  // namespace fcap::updater
