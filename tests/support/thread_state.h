#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

namespace fcap {

/// Whether a thread of this process sleeps, which is how it waits for anything but the processor.
inline bool is_asleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  // "17 (a name, which may hold anything) S 1 ..."
  const std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line.compare(name_end + 2, 1, "S") == 0;
}

/// How often a thread of this process has gone to sleep by itself, for instance between two looks
/// at what it waits for.
inline std::uint64_t times_slept(pid_t thread) {
  constexpr std::string_view kName = "voluntary_ctxt_switches:";
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kName)) return std::stoull(line.substr(kName.size()));
  }
  return 0;
}

/// Waits until the thread sleeps, for instance inside the call that a test wants it in; false when
/// it never does.
inline bool falls_asleep(pid_t thread) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (!is_asleep(thread)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

/// The thread of this process that has this name; 0 if no thread has it.
inline pid_t thread_named(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string its_name;
    if (std::getline(comm, its_name) && its_name == name) {
      return static_cast<pid_t>(std::stol(task.path().filename()));
    }
  }
  return 0;
}

}  // namespace fcap
