// What a simulation found, as a page to show around, with nothing from elsewhere.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <fcap/version.h>

#include "base/time_text.h"
#include "cli/simulate/page_plots.h"
#include "cli/simulate/page_style.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

constexpr const char* kLegend =
    R"(<div class="legend"><span><i class="before"></i>as logged</span>)"
    R"(<span><i class="after"></i>with these rules</span></div>)";

std::string row(std::string_view tag, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
  return html + "</tr>";
}

// Cells, and one more where impressions have a price.
std::vector<std::string> with_worth(const Simulation& simulation, std::vector<std::string> cells,
                                    std::string worth_cell) {
  if (simulation.cpm) cells.push_back(std::move(worth_cell));
  return cells;
}

// A row per rule set, so that many of them fit.
std::string comparison(const Simulation& simulation) {
  std::string html = R"(<section><h2>Side by side</h2>)";
  if (simulation.outcomes.front().sweep_limit) html += sweep_plots(simulation);
  html +=
      R"(<div class="scroll"><table class="sortable"><thead>)" +
      row("th",
          with_worth(simulation,
                     {"Rules", "Shown", "Lost", "Users", "Reach", "Per user", "Per user, campaign"},
                     "Worth lost")) +
      "</thead><tbody>";
  html += row("td", with_worth(simulation,
                               {"as logged", grouped(simulation.impressions), percent(0, 1),
                                grouped(simulation.reach), percent(1, 1),
                                average(simulation.impressions, simulation.reach),
                                average(simulation.impressions, simulation.pairs)},
                               worth(0, simulation.cpm)));
  for (const Outcome& o : simulation.outcomes) {
    html +=
        row("td", with_worth(simulation,
                             {o.name, grouped(o.shown), percent(o.blocked, simulation.impressions),
                              grouped(o.reach), percent(o.reach, simulation.reach),
                              average(o.shown, o.reach), average(o.shown, o.pairs)},
                             worth(o.blocked, simulation.cpm)));
  }
  return html + "</tbody></table></div></section>\n";
}

std::string tile(const std::string& number, const char* words) {
  return fmt::format(R"(<div class="tile"><b>{}</b><span class="soft">{}</span></div>)", number,
                     words);
}

// Of campaigns or advertisers.
template <typename Item>
std::string items_table(const Simulation& simulation, std::string_view title, std::string_view what,
                        const std::vector<Item>& items) {
  std::string html =
      fmt::format(R"(<h3>{}</h3><div class="scroll"><table class="sortable"><thead>)", title) +
      row("th", with_worth(simulation,
                           {std::string(what), "Logged", "Shown", "Lost", "Share", "Users before",
                            "Users reached"},
                           "Worth lost")) +
      "</thead><tbody>";
  const std::size_t count = std::min(kBusiestMax, items.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Item& item = items[i];
    const std::uint64_t blocked = item.impressions - item.shown;
    html += row(
        "td", with_worth(simulation,
                         {simulation.names.label(item.id), grouped(item.impressions),
                          grouped(item.shown), grouped(blocked), percent(blocked, item.impressions),
                          grouped(item.reach_before), grouped(item.reach)},
                         worth(blocked, simulation.cpm)));
  }
  html += "</tbody></table></div>";
  if (items.size() > count) {
    html +=
        fmt::format(R"(<p class="soft">… and {} more with fewer impressions; --csv lists all.</p>)",
                    grouped(items.size() - count));
  }
  return html;
}

std::string rules_list(const Outcome& outcome) {
  const std::size_t count = outcome.rules.size();
  std::string html = fmt::format("<details><summary>The {}, version {}</summary>",
                                 count == 1 ? "rule" : grouped(count) + " rules", outcome.version);
  html += R"(<div class="scroll"><table class="sortable"><thead>)" +
          row("th", {"Rule", "Lost", "What it says"}) + "</thead><tbody>";
  std::size_t listed = 0;
  for (const RuleCost& rule : outcome.rules) {
    if (++listed > kBusiestMax) break;
    html += row("td", {rule.id, grouped(rule.blocked), rule.description});
  }
  return html + "</tbody></table></div></details>";
}

std::string details_of(const Simulation& simulation, const Outcome& outcome) {
  std::string html = "<h3>How often users see a campaign</h3>";
  html += kLegend;
  html += frequency_plot(simulation.per_pair, outcome.per_pair, "pairs of user and campaign");
  html += "<h3>Impressions per user</h3>";
  html += kLegend;
  html += frequency_plot(simulation.per_user, outcome.per_user, "users");
  html += "<h3>Reach by frequency</h3>" + reach_table(simulation.per_user, outcome.per_user);
  html += fmt::format("<h3>Day by day <span class=\"soft\">({})</span></h3>",
                      escaped(simulation.time_zone));
  html += kLegend;
  html += days_plot(simulation, outcome);
  html +=
      R"html(<h3>What each rule costs <span class="soft">(impressions that it blocked)</span></h3>)html";
  html += rules_plot(outcome, simulation.impressions);
  html += rules_list(outcome);
  if (!outcome.advertisers.empty()) {
    html += items_table(simulation, "Advertisers", "Advertiser", outcome.advertisers);
  }
  return html + items_table(simulation, "Campaigns", "Campaign", outcome.campaigns);
}

std::string section_of(const Simulation& simulation, const Outcome& outcome) {
  std::string html = fmt::format(R"(<section><h2>{}</h2><p class="headline">{}</p>)",
                                 escaped(outcome.name), escaped(headline(simulation, outcome)));
  html += R"(<div class="tiles">)" +
          tile(percent(outcome.blocked, simulation.impressions), "of the impressions lost") +
          tile(grouped(outcome.shown), "impressions shown") +
          tile(percent(outcome.reach, simulation.reach), "of the users still reached") +
          tile(average(outcome.shown, outcome.reach), "impressions per user reached");
  if (simulation.cpm) {
    html += tile(worth(outcome.blocked, simulation.cpm), "worth of the impressions lost");
  }
  html += "</div>";
  // Of a sweep the curves are what counts; each step can be opened.
  html += outcome.sweep_limit ? "<details><summary>In detail</summary>" +
                                    details_of(simulation, outcome) + "</details>"
                              : details_of(simulation, outcome);
  return html + "</section>\n";
}

// Without their directories, which are of no use to those who are shown the page.
std::string source_names(const Simulation& simulation) {
  std::string names;
  for (const std::string& source : simulation.sources) {
    names += (names.empty() ? "" : ", ") + std::filesystem::path(source).filename().string();
  }
  return names;
}

std::string notes(const Simulation& simulation) {
  std::string html =
      R"(<section><h2>How to read this</h2><p>Every impression of the log was put to the rules in the )"
      "order of time. One that the rules cap counts as blocked, and not for those after it; where "
      "several rules cap it, it is put down to the one that would have lasted longest. Nothing is "
      "known of what would have been shown instead, so the true effect on other campaigns is "
      "larger "
      "than what stands here: each blocked impression is room for another campaign.</p>";
  if (simulation.cpm) {
    html += fmt::format(
        "<p>Worth is what the lost impressions cost at {} per thousand, in the currency of that "
        "price; what is shown in their place earns it back.</p>",
        *simulation.cpm);
  }
  const auto note = [&](std::uint64_t number, const char* words) {
    if (number > 0) html += fmt::format("<p class=\"soft\">{} {}</p>", grouped(number), words);
  };
  note(simulation.rejections.count, "lines of the log could not be read and were left out.");
  note(simulation.without_user,
       "impressions without a user id were left out: they are never capped.");
  note(simulation.repeated, "events were in the log more than once and count once.");
  for (const Outcome& outcome : simulation.outcomes) {
    for (const std::string& warning : outcome.warnings) {
      html += fmt::format("<p class=\"soft\">{}: {}</p>", escaped(outcome.name), escaped(warning));
    }
  }
  return html + "</section>\n";
}

}  // namespace

std::string to_html(const Simulation& simulation) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Frequency caps: what if?</title>\n<style>";
  html += page_style();
  html += "</style></head>\n<body><h1>Frequency caps: what if?</h1>\n";
  html += fmt::format("<p class=\"soft\">{}</p>\n", escaped(log_sentence(simulation)));
  html += fmt::format("<p class=\"soft\">Made on {} UTC by fcap {} from {}.</p>\n",
                      base::format_instant(simulation.made_at).substr(0, 10), FCAP_VERSION,
                      escaped(source_names(simulation)));
  if (simulation.outcomes.size() > 1) html += comparison(simulation);
  for (const Outcome& outcome : simulation.outcomes) html += section_of(simulation, outcome);
  html += notes(simulation);
  html += "<script>";
  html += page_script();
  return html + "</script></body></html>\n";
}

}  // namespace fcap::cli
