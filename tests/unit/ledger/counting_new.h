#pragma once

#include <cstddef>

namespace fcap::ledger::testing {

/// What operator new has been asked for in this binary so far; differences matter.
std::size_t allocations() noexcept;
std::size_t allocated_bytes() noexcept;

}  // namespace fcap::ledger::testing
