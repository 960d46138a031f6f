#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <fcap/time.h>

#include "ledger/ledger.h"

namespace fcap::updater {

/// How an entry stands to a record.
enum class Presence : std::uint8_t { kThere, kMissing, kErased, kTrimmed };

/// Whether a record that decoded to `record` has `entry`, or is not to have it. The later time of
/// one identity wins, so an earlier copy of what is there is there too.
[[nodiscard]] Presence presence_of(const ledger::Entry& entry, const ledger::Ledger& record);

/// Leaves what the record lacks. If it lacks nothing, leaves everything, and gives true.
bool keep_missing(const ledger::Ledger& record, std::vector<ledger::Entry>& entries,
                  std::optional<Instant>& erased_until);

}  // namespace fcap::updater
