#pragma once

#include <span>
#include <string_view>

namespace fcap::bench {

/// A number that every report has, if only to say why not, and what it is to be.
struct Target {
  std::string_view key;   ///< at the top level of the report
  std::string_view part;  ///< which finds it out
  std::string_view what;
  std::string_view unit;
  double bound = 0;
  int digits = 0;
  bool at_least = false;  ///< or else at most

  [[nodiscard]] bool reached_by(double value) const {
    return at_least ? value >= bound : value <= bound;
  }
};

[[nodiscard]] std::span<const Target> targets();

}  // namespace fcap::bench
