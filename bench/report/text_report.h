#pragma once

#include <string>

#include "report/document.h"

namespace fcap::bench {

/// The document for a terminal, and to be pasted into docs/performance.md.
[[nodiscard]] std::string text_report(const Json& document);

}  // namespace fcap::bench
