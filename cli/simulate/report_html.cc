// What a simulation found, as a page to show around: no script, and nothing from elsewhere.
#include <algorithm>

#include <fmt/format.h>

#include "cli/simulate/page_plots.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

constexpr std::size_t kCampaignsShown = 10;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--back:#fbfbf9;--card:#fff;--ink:#1d2430;--soft:#5c6675;--line:#d9dde3;
--before:#9aa5b4;--after:#0f6fb4}
@media (prefers-color-scheme:dark){:root{--back:#14181e;--card:#1c222b;--ink:#e7eaee;--soft:#a0aab8;
--line:#353d49;--before:#6b7686;--after:#58b0ee}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:2rem 1.2rem 4rem;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
h1{font-size:1.7rem;margin:0 0 .3rem}h2{font-size:1.25rem;margin:0 0 .6rem}h3{font-size:1rem;margin:1.6rem 0 .3rem}
.soft{color:var(--soft)}section{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:1.3rem 1.4rem;margin:1.4rem 0}
.headline{font-size:1.1rem;margin:.2rem 0 1rem}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem}.tile{flex:1 1 9rem;border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}
.tile b{display:block;font-size:1.45rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.35rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}thead th{color:var(--soft);font-weight:600}
svg{display:block;width:100%;height:auto}rect.before{fill:var(--before)}rect.after{fill:var(--after)}
.axis{stroke:var(--line)}text{font:12px system-ui,sans-serif;text-anchor:middle;fill:var(--soft)}
text.value{font-size:11px}text.value.after{fill:var(--after);font-weight:600}
.legend{display:flex;gap:1.2rem;font-size:.9rem;color:var(--soft)}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.4rem;vertical-align:-.05rem}
.legend .before{background:var(--before)}.legend .after{background:var(--after)}
.cost{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr) 9.5rem;gap:.8rem;align-items:center;
padding:.45rem 0;border-bottom:1px solid var(--line)}.cost svg{height:1rem}
.number .soft{margin-left:.5rem}.number{text-align:right;font-variant-numeric:tabular-nums}
@media (max-width:40rem){.cost{grid-template-columns:1fr}.number{text-align:left}}
@media print{body{max-width:none}section{break-inside:avoid}}
)";

constexpr const char* kLegend =
    R"(<div class="legend"><span><i class="before"></i>as logged</span>)"
    R"(<span><i class="after"></i>with these rules</span></div>)";

std::string row(std::string_view tag, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
  return html + "</tr>";
}

template <typename Cell>
std::string compared(const Simulation& simulation, std::string label, std::string before,
                     Cell&& cell) {
  std::vector<std::string> cells{std::move(label), std::move(before)};
  for (const Outcome& outcome : simulation.outcomes) cells.push_back(cell(outcome));
  return row("td", cells);
}

std::string comparison(const Simulation& simulation) {
  std::vector<std::string> head{"", "as logged"};
  for (const Outcome& outcome : simulation.outcomes) head.push_back(outcome.name);
  std::string html = R"(<section><h2>Side by side</h2><div class="scroll"><table><thead>)" +
                     row("th", head) + "</thead><tbody>";
  html += compared(simulation, "Impressions shown", grouped(simulation.impressions),
                   [](const Outcome& o) { return grouped(o.shown); });
  html += compared(simulation, "Impressions blocked", "–",
                   [](const Outcome& o) { return grouped(o.blocked); });
  html += compared(simulation, "Blocked, of all impressions", "–",
                   [&](const Outcome& o) { return percent(o.blocked, simulation.impressions); });
  html += compared(simulation, "Users reached", grouped(simulation.reach),
                   [](const Outcome& o) { return grouped(o.reach); });
  html += compared(simulation, "Impressions per user reached",
                   average(simulation.impressions, simulation.reach),
                   [](const Outcome& o) { return average(o.shown, o.reach); });
  html += compared(simulation, "Impressions per user and campaign",
                   average(simulation.impressions, simulation.pairs),
                   [](const Outcome& o) { return average(o.shown, o.pairs); });
  return html + "</tbody></table></div></section>\n";
}

std::string tile(const std::string& number, const char* words) {
  return fmt::format(R"(<div class="tile"><b>{}</b><span class="soft">{}</span></div>)", number,
                     words);
}

std::string campaigns_table(const Outcome& outcome) {
  std::string html = R"(<h3>The busiest campaigns</h3><div class="scroll"><table><thead>)" +
                     row("th", {"Campaign", "Impressions", "Shown", "Blocked", "Share",
                                "Users before", "Users reached"}) +
                     "</thead><tbody>";
  const std::size_t count = std::min(kCampaignsShown, outcome.campaigns.size());
  for (std::size_t i = 0; i < count; ++i) {
    const CampaignOutcome& campaign = outcome.campaigns[i];
    const std::uint64_t blocked = campaign.impressions - campaign.shown;
    html += row("td", {campaign.id, grouped(campaign.impressions), grouped(campaign.shown),
                       grouped(blocked), percent(blocked, campaign.impressions),
                       grouped(campaign.reach_before), grouped(campaign.reach)});
  }
  return html + "</tbody></table></div>";
}

std::string section_of(const Simulation& simulation, const Outcome& outcome) {
  std::string html = fmt::format(R"(<section><h2>{}</h2><p class="headline">{}</p>)",
                                 escaped(outcome.name), escaped(headline(simulation, outcome)));
  html += R"(<div class="tiles">)" +
          tile(percent(outcome.blocked, simulation.impressions), "of the impressions blocked") +
          tile(grouped(outcome.shown), "impressions shown") +
          tile(percent(outcome.reach, simulation.reach), "of the users still reached") +
          tile(average(outcome.shown, outcome.reach), "impressions per user reached") + "</div>";
  html += "<h3>How often users see a campaign</h3>";
  html += kLegend;
  html += frequency_plot(simulation.per_pair, outcome.per_pair, "pairs of user and campaign");
  html += "<h3>How much users see altogether</h3>";
  html += kLegend;
  html += frequency_plot(simulation.per_user, outcome.per_user, "users");
  html +=
      R"html(<h3>What each rule costs <span class="soft">(impressions that it blocked)</span></h3>)html";
  html += rules_plot(outcome, simulation.impressions);
  html += campaigns_table(outcome);
  return html + "</section>\n";
}

std::string notes(const Simulation& simulation) {
  std::string html =
      R"(<section><h2>How to read this</h2><p>Every impression of the log was put to the rules in the )"
      "order of time. One that the rules cap counts as blocked, and not for those after it; where "
      "several rules cap it, it is put down to the one that would have lasted longest. Nothing is "
      "known of what would have been shown instead, so the true effect on other campaigns is "
      "larger "
      "than what stands here: each blocked impression is room for another campaign.</p>";
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
  html += kStyle;
  html += "</style></head>\n<body><h1>Frequency caps: what if?</h1>\n";
  html += fmt::format("<p class=\"soft\">{}</p>\n", escaped(log_sentence(simulation)));
  if (simulation.outcomes.size() > 1) html += comparison(simulation);
  for (const Outcome& outcome : simulation.outcomes) html += section_of(simulation, outcome);
  html += notes(simulation);
  return html + "</body></html>\n";
}

}  // namespace fcap::cli
