#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <fcap/time.h>

#include "ledger/ledger.h"

namespace fcap::updater {

/// How an entry stands to a record.
enum class Presence : std::uint8_t { kThere, kMissing, kErased, kTrimmed };

/// How `entry` stands to a record that decoded to `record`. An entry is there, too, if the record
/// has a copy of it with a later time, because that one counts.
[[nodiscard]] Presence presence_of(const ledger::Entry& entry, const ledger::Ledger& record);

/// Removes what the record has already or must not have. If it lacks nothing, removes nothing and
/// returns true.
bool keep_missing(const ledger::Ledger& record, std::vector<ledger::Entry>& entries,
                  std::optional<Instant>& erased_until);

}  // namespace fcap::updater
