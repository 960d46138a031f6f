#pragma once

#include <string>
#include <string_view>

#include "report/document.h"

namespace fcap::bench {

/// A plot of a part (bench/README.md) as an <svg> of lines with points, styled by the page.
[[nodiscard]] std::string svg_plot(const Json& plot);

[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace fcap::bench
