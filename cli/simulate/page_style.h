#pragma once

namespace fcap::cli {

/// The page's style sheet and its script, as they stand in it.
[[nodiscard]] const char* page_style() noexcept;
[[nodiscard]] const char* page_script() noexcept;

}  // namespace fcap::cli
