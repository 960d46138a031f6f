#include "updater/process/start_again.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "updater/process/service_notify.h"

namespace fcap::updater {
namespace {

using Clock = std::chrono::steady_clock;

// No setting: those begin with FCAP_UPDATER_.
constexpr const char* kBeganVariable = "FCAP_RESTART_BEGAN";

}  // namespace

int start_again(char* const* arguments, Clock::time_point began) {
  const std::string text = std::to_string(began.time_since_epoch().count());
  ::setenv(kBeganVariable, text.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no reader is left
  ServiceNotify::alive("restarting to read files that have changed");
  spdlog::default_logger_raw()->flush();
  ::execve("/proc/self/exe", arguments, environ);
  spdlog::error("cannot restart: /proc/self/exe: {}", std::generic_category().message(errno));
  return EXIT_FAILURE;
}

std::optional<Clock::time_point> restart_began() {
  const char* const text = std::getenv(kBeganVariable);  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) return std::nullopt;
  return Clock::time_point(Clock::duration(std::strtoll(text, nullptr, 10)));
}

}  // namespace fcap::updater
