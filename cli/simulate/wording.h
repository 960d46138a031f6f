#pragma once

#include <cstdint>
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
/// "1" … "9", "10+".
[[nodiscard]] std::string frequency_label(std::size_t index);

/// "40,000 impressions of 80 campaigns to 317 users, from … to …."
[[nodiscard]] std::string log_sentence(const Simulation& simulation);
/// What a rule set does, in a sentence or two.
[[nodiscard]] std::string headline(const Simulation& simulation, const Outcome& outcome);

}  // namespace fcap::cli
