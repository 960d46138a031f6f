#pragma once

#include <string_view>

namespace fcap::cli {

/// page.html, as the build embeds it.
extern const std::string_view kPage;

}  // namespace fcap::cli
