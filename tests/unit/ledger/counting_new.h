#pragma once

#include <cstddef>

namespace fcap::ledger::testing {

/// What operator new has been asked for in this binary so far; differences matter.
std::size_t allocations() noexcept;
std::size_t allocated_bytes() noexcept;
/// Lets `left` more allocations succeed and fails those after them; -1: fails none.
void fail_allocations_after(std::ptrdiff_t left) noexcept;

}  // namespace fcap::ledger::testing
