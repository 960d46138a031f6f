#pragma once

#include <optional>
#include <string>

namespace fcap::checker {

/// A record as a check has read it from the master.
struct KeptRecord {
  std::string user;
  /// nullopt: there was none.
  std::optional<std::string> bytes;
};

}  // namespace fcap::checker
