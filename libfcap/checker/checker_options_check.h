#pragma once

#include <fcap/checker_options.h>
#include <fcap/status.h>

namespace fcap::checker {

/// Names every option that is outside its range, one per line. The options of Redis and of the rule
/// source are judged by those who use them.
[[nodiscard]] Status check_options(const CheckerOptions& options);

}  // namespace fcap::checker
