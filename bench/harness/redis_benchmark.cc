#include "harness/redis_benchmark.h"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

#include <sys/resource.h>

namespace fcap::bench {
namespace {

constexpr std::size_t kTrialRequests = 5'000;

double children_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "re"), pclose);
  if (!pipe) throw std::runtime_error("redis-benchmark could not be started");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    output.append(buffer.data(), read);
  }
  return output;
}

// The last line is "command","requests/s",…; the command may hold commas.
double requests_per_second_of(const std::string& csv) {
  const std::size_t line = csv.find_last_of('\n', csv.size() < 2 ? 0 : csv.size() - 2);
  const std::size_t comma = csv.find("\",\"", line == std::string::npos ? 0 : line);
  if (comma == std::string::npos) throw std::runtime_error("redis-benchmark said: " + csv);
  return std::stod(csv.substr(comma + 3));
}

}  // namespace

RedisBenchmark::RedisBenchmark(RedisConsole& console, std::vector<std::string> command,
                               std::size_t pipeline, std::size_t random_below)
    : console_(console),
      command_(std::move(command)),
      pipeline_(pipeline),
      random_below_(random_below) {}

Measurement RedisBenchmark::run(double seconds) {
  if (expected_per_second_ == 0) run_requests(kTrialRequests);
  return run_requests(static_cast<std::size_t>(expected_per_second_ * seconds) + 1);
}

Measurement RedisBenchmark::run_requests(std::size_t requests) {
  const std::string& address = console_.address();
  std::string line = "redis-benchmark -h " + address.substr(0, address.rfind(':')) + " -p " +
                     address.substr(address.rfind(':') + 1) + " --dbnum " +
                     std::to_string(console_.database()) + " -c 1 --csv -n " +
                     std::to_string(requests) + " -P " + std::to_string(pipeline_) + " -r " +
                     std::to_string(random_below_);
  for (const std::string& word : command_) line += " '" + word + "'";
  line += " 2>/dev/null";

  const double redis_before = console_.cpu_seconds();
  const double client_before = children_cpu_seconds();
  expected_per_second_ = requests_per_second_of(output_of(line));
  const double scale = 1e6 / static_cast<double>(requests);
  return {.requests_per_second = expected_per_second_,
          .client_cpu_us = (children_cpu_seconds() - client_before) * scale,
          .redis_cpu_us = (console_.cpu_seconds() - redis_before) * scale};
}

}  // namespace fcap::bench
