#pragma once

#include <functional>
#include <thread>

#include <fcap/status.h>

namespace fcap::redis {

/// Starts a thread that carries `name` (at most 15 characters) and blocks all signals, so that the
/// host's handlers never run on it.
[[nodiscard]] Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace fcap::redis
