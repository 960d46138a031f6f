#include "updater/processes.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fcap::bench {
namespace {

std::filesystem::directory_iterator threads_of(int pid) {
  std::error_code gone;
  return {"/proc/" + std::to_string(pid) + "/task", gone};
}

}  // namespace

double cpu_seconds(int pid) {
  double sum = 0;
  for (const auto& thread : threads_of(pid)) {
    // The first number is the time on a processor in nanoseconds.
    std::uint64_t ran_ns = 0;
    std::ifstream(thread.path() / "schedstat") >> ran_ns;
    sum += static_cast<double>(ran_ns) / 1e9;
  }
  return sum;
}

void pin(int pid, int core) {
  const auto cores = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (cores == 1) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = 0; i < cores; ++i) {
    if (core < 0 || i == static_cast<std::size_t>(core)) CPU_SET(i, &set);
  }
  for (const auto& thread : threads_of(pid)) {
    ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof set, &set);
  }
}

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::filesystem::path& errors) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // Emptied before anybody can read what a child before this one has said.
  const int errors_fd = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ > 0) {
    ::close(errors_fd);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(::open("/dev/null", O_RDWR), STDOUT_FILENO);
  ::dup2(errors_fd, STDERR_FILENO);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

bool ChildProcess::end(int signal) {
  if (pid_ <= 0) return false;
  if (signal != 0) ::kill(pid_, signal);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

SlowedProcess::SlowedProcess(pid_t pid)
    : thread_([pid](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          ::kill(pid, SIGSTOP);
          std::this_thread::sleep_for(std::chrono::milliseconds{50});
          ::kill(pid, SIGCONT);
          std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
      }) {}

}  // namespace fcap::bench
