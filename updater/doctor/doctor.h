#pragma once

#include <string>

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// Asks every server whether it is as the updater needs it (`check-config --connect`). Takes some
/// seconds where a server does not answer.
[[nodiscard]] Findings check_servers(const Settings& settings);

/// Whether something must change.
[[nodiscard]] bool must_change(const Findings& findings) noexcept;

/// One line per finding: "error    redis     maxmemory-policy is …".
[[nodiscard]] std::string findings_text(const Findings& findings);
/// Says the same as one JSON object.
[[nodiscard]] std::string findings_json(const Findings& findings);

}  // namespace fcap::updater
