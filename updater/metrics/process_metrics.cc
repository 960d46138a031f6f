#include "updater/metrics/process_metrics.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fcap::updater {
namespace {

using prometheus::MetricType;

constexpr double kMicroseconds = 1e6;

// Field `number` of /proc/self/stat, counted from 1 as in proc(5).
std::optional<double> stat_field(int number) {
  std::ifstream file("/proc/self/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  // The second field is the program's name in brackets, which may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  constexpr int kFirstBehindName = 3;
  std::string field;
  for (int i = kFirstBehindName; i <= number; ++i) {
    if (!(fields >> field)) return std::nullopt;
  }
  return std::stod(field);
}

std::optional<double> cpu_seconds() {
  rusage used = {};
  if (getrusage(RUSAGE_SELF, &used) != 0) return std::nullopt;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicroseconds;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::optional<double> start_time() {
  constexpr int kStartTime = 22;
  const auto ticks = stat_field(kStartTime);
  timespec since_boot = {};
  if (!ticks || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return std::nullopt;
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  const double up = static_cast<double>(since_boot.tv_sec);
  return now.count() - up + *ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::optional<double> resident_bytes() {
  constexpr int kResidentPages = 24;
  const auto pages = stat_field(kResidentPages);
  if (!pages) return std::nullopt;
  return *pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::optional<double> virtual_bytes() {
  constexpr int kVirtualBytes = 23;
  return stat_field(kVirtualBytes);
}

std::optional<double> open_files() {
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(files), end(files)));
}

std::optional<double> open_files_max() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

struct ProcessMetric {
  std::string_view name;
  MetricType type;
  std::string_view unit;
  std::string_view text;
  std::optional<double> (*read)();
};

constexpr std::array kProcessMetrics = {
    ProcessMetric{"process_cpu_seconds_total", MetricType::Counter, "seconds",
                  "Processor time that the process has used.", cpu_seconds},
    ProcessMetric{"process_resident_memory_bytes", MetricType::Gauge, "bytes",
                  "Memory that it holds.", resident_bytes},
    ProcessMetric{"process_virtual_memory_bytes", MetricType::Gauge, "bytes", "Its address space.",
                  virtual_bytes},
    ProcessMetric{"process_start_time_seconds", MetricType::Gauge, "seconds",
                  "When it was started, since 1970.", start_time},
    ProcessMetric{"process_open_fds", MetricType::Gauge, "", "Open file descriptors.", open_files},
    ProcessMetric{"process_max_fds", MetricType::Gauge, "", "How many it may have open.",
                  open_files_max},
};

}  // namespace

std::vector<prometheus::MetricFamily> process_metrics() {
  std::vector<prometheus::MetricFamily> families;
  for (const ProcessMetric& metric : kProcessMetrics) {
    const auto value = metric.read();
    if (!value) continue;
    prometheus::MetricFamily family;
    family.name = metric.name;
    family.help = metric.text;
    family.type = metric.type;
    prometheus::ClientMetric sample;
    (metric.type == MetricType::Counter ? sample.counter.value : sample.gauge.value) = *value;
    family.metric.push_back(std::move(sample));
    families.push_back(std::move(family));
  }
  return families;
}

std::string process_metrics_reference() {
  std::string out;
  for (const ProcessMetric& metric : kProcessMetrics) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", metric.name,
                       metric.type == MetricType::Counter ? "counter" : "gauge", metric.unit,
                       metric.text);
  }
  return out;
}

}  // namespace fcap::updater
