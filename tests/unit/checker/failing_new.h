#pragma once

#include <cstddef>

namespace fcap::checker_test {

/// Lets the calling thread's next `left` allocations succeed, fails the `count` after those, and
/// none after that.
void fail_allocations_of_this_thread(std::ptrdiff_t left, std::ptrdiff_t count) noexcept;
/// Ends that. Whether any allocation has failed.
bool end_of_failing_allocations() noexcept;

}  // namespace fcap::checker_test
