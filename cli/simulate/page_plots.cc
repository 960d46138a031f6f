#include "cli/simulate/page_plots.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

/// A bar from the ground line upwards, or nothing at all for zero; a small value stays visible.
std::string upright_bar(double x, double ground, double height, std::string_view css,
                        std::string_view title) {
  if (height <= 0) return {};
  height = std::max(height, 1.5);
  return fmt::format(
      R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="26" height="{:.1f}"><title>{}</title></rect>)",
      css, x, ground - height, height, escaped(title));
}

/// Large numbers so short that they fit above a bar: 1,234 or 12.3k or 4.5M.
std::string short_number(std::uint64_t number) {
  if (number < 10'000) return grouped(number);
  const auto value = static_cast<double>(number);
  if (number < 1'000'000) return fmt::format("{:.{}f}k", value / 1e3, number < 100'000 ? 1 : 0);
  return fmt::format("{:.1f}M", value / 1e6);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    switch (byte) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += byte;
    }
  }
  return out;
}

std::string frequency_plot(const Frequencies& before, const Frequencies& after,
                           std::string_view of) {
  constexpr double kGround = 200;
  constexpr double kHighest = 160;
  constexpr double kStep = 72;
  const std::uint64_t most =
      std::max({std::uint64_t{1}, *std::max_element(before.begin(), before.end()),
                *std::max_element(after.begin(), after.end())});
  const auto height = [&](std::uint64_t value) {
    return kHighest * static_cast<double>(value) / static_cast<double>(most);
  };
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 740 246" role="img" aria-label="{} by impressions, before and after">)",
      escaped(of));
  svg += fmt::format(R"(<line class="axis" x1="6" x2="734" y1="{0}" y2="{0}"/>)", kGround);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double left = 10 + kStep * static_cast<double>(i);
    const auto bar = [&](double x, std::uint64_t value, std::string_view css,
                         std::string_view when) {
      svg += upright_bar(x, kGround, height(value), css,
                         fmt::format("{}: {} {} with {} {}", when, grouped(value), of,
                                     frequency_label(i), i == 0 ? "impression" : "impressions"));
      // Neighbours of nearly the same height would write over each other: one of them is raised.
      svg += fmt::format(R"(<text class="value {}" x="{:.1f}" y="{:.1f}">{}</text>)", css, x + 13,
                         kGround - std::max(height(value), 1.5) - (css == "before" ? 18 : 5),
                         short_number(value));
    };
    bar(left + 3, before[i], "before", "as logged");
    bar(left + 31, after[i], "after", "with the rules");
    svg += fmt::format(R"(<text class="label" x="{:.1f}" y="{}">{}</text>)", left + 30,
                       kGround + 18, frequency_label(i));
  }
  svg += fmt::format(R"(<text class="label" x="370" y="{}">impressions seen</text></svg>)",
                     kGround + 40);
  return svg;
}

std::string rules_plot(const Outcome& outcome, std::uint64_t impressions) {
  constexpr std::size_t kBarsMax = 12;
  std::vector<const RuleCost*> costs;
  for (const RuleCost& rule : outcome.rules) {
    if (rule.blocked > 0) costs.push_back(&rule);
  }
  if (costs.empty()) return "<p>No rule blocked anything.</p>";
  const std::size_t shown = std::min(costs.size(), kBarsMax);
  std::string html = R"(<div class="costs">)";
  for (std::size_t i = 0; i < shown; ++i) {
    const RuleCost& rule = *costs[i];
    const double width =
        100 * static_cast<double>(rule.blocked) / static_cast<double>(costs.front()->blocked);
    html += fmt::format(R"(<div class="cost"><div><b>{}</b> <span class="soft">{}</span></div>)"
                        R"(<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">)"
                        R"(<rect class="after" width="{:.2f}" height="6"/></svg>)"
                        R"(<div class="number">{} <span class="soft">{}</span></div></div>)",
                        escaped(rule.id), escaped(rule.description), std::max(width, 0.4),
                        grouped(rule.blocked), percent(rule.blocked, impressions));
  }
  html += "</div>";
  if (costs.size() > shown) {
    html += fmt::format(R"(<p class="soft">… and {} more rules that blocked less.</p>)",
                        grouped(costs.size() - shown));
  }
  return html;
}

}  // namespace fcap::cli
