#pragma once

#include <cstddef>

namespace fcap::checker_test {

/// Lets the calling thread's next `left` allocations succeed, fails the `count` after those, and
/// none after that.
void fail_allocations_of_this_thread(std::ptrdiff_t left, std::ptrdiff_t count) noexcept;
/// Ends that. Whether any allocation has failed.
bool end_of_failing_allocations() noexcept;
/// The most bytes that the calling thread has asked for at once since the last call.
std::size_t take_largest_allocation() noexcept;

}  // namespace fcap::checker_test
