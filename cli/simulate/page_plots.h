#pragma once

#include <string>
#include <string_view>

#include "cli/simulate/simulation.h"

/// Parts of the page, each as HTML.
namespace fcap::cli {

/// Text as it may stand in HTML, between tags and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);

/// Pairs of bars, before and after, one pair per number of impressions. `of` says what is counted.
[[nodiscard]] std::string frequency_plot(const Frequencies& before, const Frequencies& after,
                                         std::string_view of);

/// How many users are reached at least 1, 2, 3, … times.
[[nodiscard]] std::string reach_table(const Frequencies& before, const Frequencies& after);

/// Impressions per day, before and after.
[[nodiscard]] std::string days_plot(const Simulation& simulation, const Outcome& outcome);

/// Three curves over the limits of a sweep: impressions lost, reach, frequency.
[[nodiscard]] std::string sweep_plots(const Simulation& simulation);

/// One bar per rule that blocked anything, as part of all impressions.
[[nodiscard]] std::string rules_plot(const Outcome& outcome, std::uint64_t impressions);

}  // namespace fcap::cli
