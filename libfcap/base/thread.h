#pragma once

#include <functional>
#include <future>
#include <string_view>
#include <thread>

#include <fcap/status.h>

namespace fcap::base {

/// Called first on a new thread, with its name. Lets a host set affinity, scheduling or a profiler.
using ThreadHook = std::function<void(std::string_view)>;

/// Starts a thread that carries `name` (at most 15 characters) and leaves the host's signals to the
/// host's threads. Not blocked are the signals that a fault raises on the thread itself (SIGSEGV,
/// SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT), because the kernel kills a process that
/// blocks them without calling its handler; and SIGPROF, without which profilers are blind.
[[nodiscard]] Result<std::thread> start_thread(std::string_view name, std::function<void()> body,
                                               ThreadHook hook = {});

/// Lets the thread end by itself. dlclose() of the library, or of a plug-in that fcap is linked
/// into, no longer unmaps its code from then on, because the thread returns into it.
void detach(std::thread thread) noexcept;

/// Starts a thread that nobody joins, for work that a library may never finish. `body` must own all
/// that it uses. The future is ready once `body` has returned and has been destroyed; destroying
/// the future does not wait.
[[nodiscard]] Result<std::future<void>> start_detached(std::string_view name,
                                                       std::function<void()> body);

}  // namespace fcap::base
