#include "updater/cpu_time.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace fcap::bench {

std::map<std::string, double> cpu_seconds_by_thread(int pid) {
  std::map<std::string, double> seconds;
  std::error_code gone;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    // The first number is the time on a processor in nanoseconds.
    std::uint64_t ran_ns = 0;
    std::string name;
    std::ifstream(task.path() / "schedstat") >> ran_ns;
    std::getline(std::ifstream(task.path() / "comm"), name);
    seconds[name] += static_cast<double>(ran_ns) / 1e9;
  }
  return seconds;
}

double cpu_seconds(int pid) {
  double sum = 0;
  for (const auto& [name, seconds] : cpu_seconds_by_thread(pid)) sum += seconds;
  return sum;
}

}  // namespace fcap::bench
