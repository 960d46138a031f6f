#pragma once

#include <chrono>

#include <fcap/checker_options.h>

namespace fcap {

/// For tests that are not about deadlines: the default of 5 ms passes by itself where the machine
/// is busy.
inline CheckerOptions patient_options() {
  CheckerOptions options;
  options.deadline = std::chrono::seconds{30};
  return options;
}

}  // namespace fcap
