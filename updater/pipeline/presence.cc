#include "updater/pipeline/presence.h"

#include <algorithm>

namespace fcap::updater {

Presence presence_of(const ledger::Entry& entry, const ledger::Ledger& record) {
  if (record.erased_before() && entry.time <= *record.erased_before()) return Presence::kErased;
  for (const ledger::Run& run : record.runs()) {
    if (run.campaign != entry.campaign || run.type != entry.type) continue;
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (record.fingerprints()[i] != entry.fingerprint) continue;
      const ledger::Entry there = record.entry(run, i);
      if (there.time != entry.time) {
        return there.time > entry.time ? Presence::kThere : Presence::kMissing;
      }
      return there.creative >= entry.creative ? Presence::kThere : Presence::kMissing;
    }
    break;
  }
  // The entry may have been trimmed for size; if it were restored, it would only be trimmed again.
  if (record.complete_since() && entry.time < *record.complete_since()) return Presence::kTrimmed;
  return Presence::kMissing;
}

bool keep_missing(const ledger::Ledger& record, std::vector<ledger::Entry>& entries,
                  std::optional<Instant>& erased_until) {
  const bool erased =
      !erased_until || (record.erased_before() && *record.erased_before() >= *erased_until);
  const auto present = [&record](const ledger::Entry& entry) {
    return presence_of(entry, record) != Presence::kMissing;
  };
  if (erased && std::all_of(entries.begin(), entries.end(), present)) return true;
  std::erase_if(entries, present);
  if (erased) erased_until.reset();
  return false;
}

}  // namespace fcap::updater
