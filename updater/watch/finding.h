#pragma once

#include <string>
#include <vector>

namespace fcap::updater {

/// Something about a server that was looked at, and what to change where it is not as it must be.
struct Finding {
  enum class Level : unsigned char {
    kOk,
    kWarning,  ///< works, but deserves a look
    kError,    ///< must change
  };
  Level level = Level::kOk;
  std::string server;  ///< "kafka", "redis" or "postgres"
  std::string text;
};
using Findings = std::vector<Finding>;

}  // namespace fcap::updater
