#pragma once

#include <map>
#include <string>

namespace fcap::bench {

/// What a process has computed so far, in seconds, from /proc; 0 when there is no such process.
[[nodiscard]] double cpu_seconds(int pid);

/// The same by the threads' names; threads that have ended are missing.
[[nodiscard]] std::map<std::string, double> cpu_seconds_by_thread(int pid);

}  // namespace fcap::bench
