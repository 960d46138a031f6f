#pragma once

#include <string_view>

#include <fcap/status.h>

#include "redis/config_record.h"

namespace fcap::redis {

/// parse_config() for the updater that is about to shorten the value: also of one that is too long
/// for readers.
[[nodiscard]] Result<ConfigRecord> parse_long_config(std::string_view text);

}  // namespace fcap::redis
