#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/status.h>
#include <fcap/store.h>

namespace fcap::cli {

/// What a replica may have answered.
struct CheckedRecord {
  std::optional<std::string> bytes;  ///< nullopt: there is no record
  bool stale = false;
};

/// Store::get_maybe_stale(), waited for.
Result<CheckedRecord> blocking_get_maybe_stale(Store& store, std::string_view key,
                                               std::chrono::milliseconds timeout);

/// Reads one record and waits for it. No value inside: there is no record.
Result<std::optional<std::string>> blocking_get(Store& store, std::string_view key,
                                                std::chrono::milliseconds timeout);

}  // namespace fcap::cli
