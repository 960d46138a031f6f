#pragma once

#include <cstddef>

namespace fcap::bench {

/// How often this thread has called operator new so far. The program's own operators count.
[[nodiscard]] std::size_t allocation_count() noexcept;

}  // namespace fcap::bench
