#pragma once

#include <chrono>
#include <optional>

namespace fcap::updater {

/// Replaces this program with another start of it, in the same process and with the same arguments
/// and environment: whoever supervises the process notices nothing. Signals that are blocked wait
/// for the new start. Returns only if that fails: the exit code.
int start_again(char* const* arguments, std::chrono::steady_clock::time_point began);

/// When the start before this one began to stop for start_again(); none: there was none.
[[nodiscard]] std::optional<std::chrono::steady_clock::time_point> restart_began();

}  // namespace fcap::updater
