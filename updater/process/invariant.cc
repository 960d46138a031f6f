#include "updater/process/invariant.h"

#include <cstdlib>

#include <spdlog/spdlog.h>

namespace fcap::updater {

void end_for_broken(const char* invariant, const char* file, int line) noexcept {
  spdlog::error("ending, because this does not hold and must: {} ({}:{})", invariant, file, line);
  spdlog::default_logger_raw()->flush();
  std::abort();
}

}  // namespace fcap::updater
