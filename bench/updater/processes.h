#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace fcap::bench {

/// CPU time that the running threads of a process have used, in seconds; 0 without such a process.
[[nodiscard]] double cpu_seconds(int pid);

/// Binds all threads of a process to a core; -1: to none. A machine of one core is left as it is.
void pin(int pid, int core);

/// A child process, ended with its object. `errors`: the file that gets its standard error; what it
/// says on standard output is dropped.
class ChildProcess {
 public:
  ChildProcess(const std::vector<std::string>& command, const std::filesystem::path& errors);
  ~ChildProcess() { (void)end(SIGKILL); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Sends the signal (0: none) and waits for the end. Whether the program has ended by itself, and
  /// with success.
  bool end(int signal);

 private:
  pid_t pid_;
};

/// A process that is stopped for 50 ms out of 51 as long as this lives. A Redis so treated takes
/// about 10,000 appends per second.
class SlowedProcess {
 public:
  explicit SlowedProcess(pid_t pid);

 private:
  std::jthread thread_;
};

}  // namespace fcap::bench
