#pragma once

#include <string>

#include "report/document.h"

namespace fcap::bench {

/// The document as one page that needs nothing else: no scripts, no fonts, no network.
[[nodiscard]] std::string html_report(const Json& document);

}  // namespace fcap::bench
