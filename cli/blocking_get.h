#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/status.h>
#include <fcap/store.h>

namespace fcap::cli {

/// Reads one record and waits for it. No value inside: there is no record.
Result<std::optional<std::string>> blocking_get(Store& store, std::string_view key,
                                                std::chrono::milliseconds timeout);

}  // namespace fcap::cli
