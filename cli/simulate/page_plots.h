#pragma once

#include <string>
#include <string_view>

#include "cli/simulate/simulation.h"

/// Parts of the page, each as HTML.
namespace fcap::cli {

/// Text as it may stand in HTML, between tags and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);

/// Pairs of bars, before and after, for 1, 2, … 10+ impressions. `of` says what is counted.
[[nodiscard]] std::string frequency_plot(const Frequencies& before, const Frequencies& after,
                                         std::string_view of);

/// One bar a rule that blocked anything, as part of all impressions.
[[nodiscard]] std::string rules_plot(const Outcome& outcome, std::uint64_t impressions);

}  // namespace fcap::cli
