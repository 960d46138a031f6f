#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/simulate/simulation.h"

/// Words and numbers that the reports for people share.
namespace fcap::cli {

/// "10,958".
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "27.40 %"; "0.00 %" of nothing.
[[nodiscard]] std::string percent(std::uint64_t part, std::uint64_t whole);
/// "126.2"; "0.0" where there is nothing to divide by.
[[nodiscard]] std::string average(std::uint64_t sum, std::uint64_t count);
/// What impressions are worth at a price per thousand: "1,234.50"; empty without a price.
[[nodiscard]] std::string worth(std::uint64_t impressions, const std::optional<double>& cpm);
/// Writes a day since 1970: "2019-11-24".
[[nodiscard]] std::string day_text(std::int64_t day);
/// "24–30 November 2019", "28 November – 3 December 2019".
[[nodiscard]] std::string period_text(std::int64_t first_day, std::int64_t last_day);

/// "40,000 impressions of 80 campaigns to 317 users, from … to …."
[[nodiscard]] std::string log_sentence(const Simulation& simulation);
/// What a rule set does, in a sentence or two.
[[nodiscard]] std::string headline(const Simulation& simulation, const SimulationOutcome& outcome);

}  // namespace fcap::cli
