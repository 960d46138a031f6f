// What a simulation found, for people at a terminal.
#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "base/time_text.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

constexpr std::size_t kCampaignsShown = 10;

using Table = std::vector<std::vector<std::string>>;

// How many characters a UTF-8 text has; good enough for columns.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned>(byte) & 0xC0U) != 0x80U;
  }));
}

// The first column, and those after the first `numbers` columns, are aligned left; numbers are
// aligned right.
void print_figures(const Table& rows, std::ostream& out, std::size_t numbers = SIZE_MAX) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i == 0 || i > numbers ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

template <typename Cell>
std::vector<std::string> row_of(const Simulation& simulation, std::string label, std::string before,
                                Cell&& cell) {
  std::vector<std::string> row{std::move(label), std::move(before)};
  for (const SimulationOutcome& outcome : simulation.outcomes) row.push_back(cell(outcome));
  return row;
}

void print_overview(const Simulation& simulation, std::ostream& out) {
  Table table;
  table.push_back(
      row_of(simulation, "", "as logged", [](const SimulationOutcome& o) { return o.name; }));
  table.push_back(row_of(simulation, "impressions shown", grouped(simulation.impressions),
                         [](const SimulationOutcome& o) { return grouped(o.shown); }));
  table.push_back(row_of(simulation, "blocked", "0",
                         [](const SimulationOutcome& o) { return grouped(o.blocked); }));
  table.push_back(row_of(
      simulation, "blocked, share", percent(0, 1),
      [&](const SimulationOutcome& o) { return percent(o.blocked, simulation.impressions); }));
  if (simulation.cpm) {
    table.push_back(
        row_of(simulation, "blocked, worth", worth(0, simulation.cpm),
               [&](const SimulationOutcome& o) { return worth(o.blocked, simulation.cpm); }));
  }
  table.push_back(row_of(simulation, "users reached", grouped(simulation.reach),
                         [](const SimulationOutcome& o) { return grouped(o.reach); }));
  table.push_back(row_of(simulation, "impressions per user",
                         average(simulation.impressions, simulation.reach),
                         [](const SimulationOutcome& o) { return average(o.shown, o.reach); }));
  table.push_back(row_of(simulation, "… per user and campaign",
                         average(simulation.impressions, simulation.pairs),
                         [](const SimulationOutcome& o) { return average(o.shown, o.pairs); }));
  const bool shadows = std::any_of(simulation.outcomes.begin(), simulation.outcomes.end(),
                                   [](const SimulationOutcome& o) { return o.shadow_blocked > 0; });
  if (shadows) {
    table.push_back(row_of(simulation, "shadow rules would block", "",
                           [](const SimulationOutcome& o) { return grouped(o.shadow_blocked); }));
  }
  print_figures(table, out);
}

void print_frequencies(const Simulation& simulation, const char* title,
                       Frequencies Simulation::*before, Frequencies SimulationOutcome::*after,
                       std::ostream& out) {
  out << "\n" << title << "\n";
  Table table;
  table.push_back(row_of(simulation, "impressions", "as logged",
                         [](const SimulationOutcome& o) { return o.name; }));
  std::uint64_t most = (simulation.*before).most();
  for (const SimulationOutcome& outcome : simulation.outcomes)
    most = std::max(most, (outcome.*after).most());
  for (const FrequencyBucket& bucket : frequency_buckets(most)) {
    const auto number = [&](const Frequencies& frequencies) {
      return grouped(frequencies.between(bucket.first, bucket.last));
    };
    table.push_back(row_of(simulation, bucket.label(), number(simulation.*before),
                           [&](const SimulationOutcome& o) { return number(o.*after); }));
  }
  print_figures(table, out);
}

void print_reach(const Simulation& simulation, std::ostream& out) {
  out << "\nUsers reached at least so often\n";
  Table table;
  table.push_back(row_of(simulation, "at least", "as logged",
                         [](const SimulationOutcome& o) { return o.name; }));
  for (const std::uint64_t step : reach_steps(simulation.per_user.most())) {
    table.push_back(
        row_of(simulation, grouped(step) + "+", grouped(simulation.per_user.at_least(step)),
               [&](const SimulationOutcome& o) { return grouped(o.per_user.at_least(step)); }));
  }
  print_figures(table, out);
}

// One line per rule set: what the curve of a sweep is drawn from.
void print_sweep(const Simulation& simulation, std::ostream& out) {
  Table table{{"", "shown", "blocked", "blocked, share", "users reached", "per user",
               "per user and campaign"}};
  table.push_back({"as logged", grouped(simulation.impressions), "0", percent(0, 1),
                   grouped(simulation.reach), average(simulation.impressions, simulation.reach),
                   average(simulation.impressions, simulation.pairs)});
  for (const SimulationOutcome& o : simulation.outcomes) {
    table.push_back({o.name, grouped(o.shown), grouped(o.blocked),
                     percent(o.blocked, simulation.impressions), grouped(o.reach),
                     average(o.shown, o.reach), average(o.shown, o.pairs)});
  }
  print_figures(table, out);
}

void print_rules(const Simulation& simulation, const SimulationOutcome& outcome,
                 std::ostream& out) {
  out << "\nWhat each rule of " << outcome.name << " costs\n";
  Table table{{"rule", "blocked", "share", ""}};
  std::size_t without = 0;
  for (const RuleCost& rule : outcome.rules) {
    if (rule.blocked == 0) {
      ++without;
      continue;
    }
    table.push_back({rule.id, grouped(rule.blocked), percent(rule.blocked, simulation.impressions),
                     rule.description});
  }
  if (table.size() > 1) print_figures(table, out, 2);
  if (without > 0) {
    out << fmt::format("  {} {} blocked nothing\n", grouped(without),
                       without == 1 ? "rule" : "rules");
  }
  if (outcome.rules.empty()) out << "  the rule set has no rules\n";
}

void print_campaigns(const Simulation& simulation, std::ostream& out) {
  out << "\nThe busiest campaigns (impressions shown; users reached in brackets)\n";
  Table table;
  table.push_back(row_of(simulation, "campaign", "as logged",
                         [](const SimulationOutcome& o) { return o.name; }));
  const auto& busiest = simulation.outcomes.front().campaigns;
  for (std::size_t i = 0; i < std::min(kCampaignsShown, busiest.size()); ++i) {
    const auto cell = [](std::uint64_t shown, std::uint64_t reach) {
      return fmt::format("{} ({})", grouped(shown), grouped(reach));
    };
    // The log's order, so that it is the same for every rule set.
    table.push_back(row_of(simulation, simulation.names.label(busiest[i].id),
                           cell(busiest[i].impressions, busiest[i].reach_before),
                           [&](const SimulationOutcome& o) {
                             return cell(o.campaigns[i].shown, o.campaigns[i].reach);
                           }));
  }
  print_figures(table, out);
}

}  // namespace

void print_text(const Simulation& simulation, std::ostream& out) {
  out << log_sentence(simulation) << "\n";
  if (simulation.outcomes.front().sweep_limit) {
    out << "\n";
    print_sweep(simulation, out);
    print_reach(simulation, out);
    return;
  }
  for (const SimulationOutcome& outcome : simulation.outcomes)
    out << headline(simulation, outcome) << "\n";
  out << "\n";
  print_overview(simulation, out);
  print_frequencies(simulation, "Users by impressions", &Simulation::per_user,
                    &SimulationOutcome::per_user, out);
  print_frequencies(simulation, "Users and campaigns by impressions", &Simulation::per_pair,
                    &SimulationOutcome::per_pair, out);
  print_reach(simulation, out);
  for (const SimulationOutcome& outcome : simulation.outcomes)
    print_rules(simulation, outcome, out);
  print_campaigns(simulation, out);
}

}  // namespace fcap::cli
