#pragma once

#include <string>

namespace fcap::updater {

/// updater.json(5), in roff: the same tables as the reference page.
[[nodiscard]] std::string configuration_man_page();

}  // namespace fcap::updater
