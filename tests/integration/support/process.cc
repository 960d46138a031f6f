#include "support/process.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fcap::testing {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

int memory_file(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) fail(errno, "memfd_create");
  return fd;
}

std::string read_all(int fd) {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t got = ::pread(fd, chunk, sizeof(chunk), static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
  }
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Later ones win in getenv() of the child only if the earlier ones are left out.
std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : added) replaced = replaced || own.starts_with(name);
    if (!replaced) merged.push_back(text);
  }
  return merged;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "fcap-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) fail(errno, "mkdtemp " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(const std::vector<std::string>& command, const Options& options)
    : output_fd_(memory_file("output")), errors_fd_(memory_file("errors")) {
  const int input_fd = memory_file("input");
  if (::write(input_fd, options.input.data(), options.input.size()) < 0) fail(errno, "write");
  ::lseek(input_fd, 0, SEEK_SET);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input_fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output_fd_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors_fd_, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = command;
  std::vector<std::string> environment = merged_environment(options.environment);
  const int error = posix_spawnp(&pid_, words.front().c_str(), &files, &attributes,
                                 pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(input_fd);
  if (error != 0) {
    ::close(output_fd_);
    ::close(errors_fd_);
    fail(error, "cannot start " + command.front());
  }
}

Process::~Process() {
  kill();
  ::close(output_fd_);
  ::close(errors_fd_);
}

bool Process::running() {
  if (ended_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) note_end(status);
  return !ended_;
}

void Process::send_signal(int signal) {
  if (running()) ::kill(pid_, signal);
}

void Process::kill() {
  send_signal(SIGKILL);
  wait();
}

int Process::wait() {
  int status = 0;
  while (!ended_) {
    if (waitpid(pid_, &status, 0) == pid_) {
      note_end(status);
    } else if (errno != EINTR) {
      fail(errno, "waitpid");
    }
  }
  return exit_code_;
}

bool Process::wait_for(std::chrono::milliseconds time) {
  return wait_until([this] { return !running(); }, time);
}

void Process::note_end(int status) noexcept {
  ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Process::output() const {
  return read_all(output_fd_);
}

std::string Process::errors() const {
  return read_all(errors_fd_);
}

Finished run(const std::vector<std::string>& command, const Process::Options& options) {
  Process process(command, options);
  process.wait();
  return {process.exit_code(), process.output(), process.errors()};
}

bool has_program(const std::string& name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string rest = path == nullptr ? "" : path;
  for (;;) {
    const auto colon = rest.find(':');
    const std::string file = rest.substr(0, colon) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return true;
    if (colon == std::string::npos) return false;
    rest.erase(0, colon + 1);
  }
}

}  // namespace fcap::testing
