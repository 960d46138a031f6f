#pragma once

#include <cstdint>
#include <tuple>

#include "ledger/ledger.h"

namespace fcap::ledger {

/// What runs are sorted by.
[[nodiscard]] inline std::tuple<std::uint64_t, EventType> run_key(const Run& run) noexcept {
  return {run.campaign, run.type};
}

[[nodiscard]] inline std::tuple<std::uint64_t, EventType> run_key(const Entry& entry) noexcept {
  return {entry.campaign, entry.type};
}

}  // namespace fcap::ledger
