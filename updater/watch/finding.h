#pragma once

#include <string>
#include <vector>

namespace fcap::updater {

/// The result of checking one property of a server, and what to change if it is wrong.
struct Finding {
  enum class FindingLevel : unsigned char {
    kOk,
    kWarning,  ///< works, but deserves a look
    kError,    ///< must change
  };
  FindingLevel level = FindingLevel::kOk;
  std::string server;  ///< "kafka", "redis" or "postgres"; "files" for this machine's
  std::string text;
};
using Findings = std::vector<Finding>;

}  // namespace fcap::updater
