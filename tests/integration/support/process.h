#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace fcap::testing {

/// A directory of its own that is gone with everything in it when the object is.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// A child process with default signal dispositions. It gets SIGKILL when the object goes and it
/// still runs. Standard output and error are kept in memory and can be read at any time.
///
///     Process updater({FCAP_UPDATER_BINARY, "run", "--config", file});
///     updater.send_signal(SIGTERM);
///     EXPECT_EQ(updater.wait(), 0) << updater.errors();
class Process {
 public:
  struct Options {
    std::vector<std::string> environment;  ///< "NAME=value", on top of this process's own
    std::string input;                     ///< what it reads from standard input
  };

  explicit Process(const std::vector<std::string>& command) : Process(command, Options{}) {}
  /// Throws std::system_error when the program cannot be started.
  Process(const std::vector<std::string>& command, const Options& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running();
  /// Does nothing once it has ended.
  void send_signal(int signal);
  /// SIGKILL, and wait until it is gone.
  void kill();
  /// Waits for the end: the exit code, or 128 + the signal that ended it.
  int wait();
  /// Waits this long; whether it has ended.
  bool wait_for(std::chrono::milliseconds time);
  /// The exit code once it has ended, as in wait().
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;

 private:
  void note_end(int status) noexcept;

  pid_t pid_ = -1;
  bool ended_ = false;
  int exit_code_ = -1;
  int output_fd_ = -1;
  int errors_fd_ = -1;
};

/// What a command left behind.
struct Finished {
  int exit_code;
  std::string output;
  std::string errors;
};

/// Runs a command to its end.
Finished run(const std::vector<std::string>& command, const Process::Options& options = {});

/// Whether a program is to be found on the PATH.
bool has_program(const std::string& name);

/// Asks `condition` every few milliseconds until it holds or `time` is over; whether it held.
template <typename Condition>
bool wait_until(Condition&& condition, std::chrono::milliseconds time = std::chrono::minutes{3}) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

}  // namespace fcap::testing
