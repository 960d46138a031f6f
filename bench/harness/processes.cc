#include "harness/processes.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <sched.h>
#include <unistd.h>

namespace fcap::bench {
namespace {

std::filesystem::directory_iterator threads_of(int pid) {
  std::error_code gone;
  return {"/proc/" + std::to_string(pid) + "/task", gone};
}

}  // namespace

void pin(int pid, int core) {
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (cores == 1) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < cores; ++i) {
    if (core < 0 || i == core) CPU_SET(static_cast<std::size_t>(i), &set);
  }
  for (const auto& thread : threads_of(pid)) {
    ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof set, &set);
  }
}

Meter::Meter(std::map<std::string, int> processes)
    : processes_(std::move(processes)), before_(cpu_seconds()) {}

Numbers Meter::per(const std::string& what, double count) const {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started_;
  Numbers numbers = {{what + "_per_second", count / took.count()}};
  for (const auto& [key, seconds] : cpu_seconds()) {
    numbers[key] = 1e6 * (seconds - before_.at(key)) / count;
  }
  return numbers;
}

Numbers Meter::cpu_seconds() const {
  Numbers seconds;
  for (const auto& [key, pid] : processes_) {
    for (const auto& thread : threads_of(pid)) {
      // The first number is the time on a processor in nanoseconds.
      std::uint64_t ran_ns = 0;
      std::ifstream(thread.path() / "schedstat") >> ran_ns;
      seconds[key] += static_cast<double>(ran_ns) / 1e9;
    }
  }
  return seconds;
}

}  // namespace fcap::bench
