#include "cli/simulate/page_plots.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

double part_of(std::uint64_t value, std::uint64_t most) {
  return most == 0 ? 0.0 : 100 * static_cast<double>(value) / static_cast<double>(most);
}

// A row of two bars, before and after, beside their label and numbers. A small value stays
// visible.
std::string pair_of_bars(const std::string& label, std::uint64_t before, std::uint64_t after,
                         std::uint64_t most, std::string_view title) {
  const auto bar = [&](std::uint64_t value, std::string_view css) {
    const double width = value == 0 ? 0 : std::max(part_of(value, most), 0.4);
    return fmt::format(R"(<i class="{}" style="width:{:.2f}%"></i>)", css, width);
  };
  return fmt::format(R"(<div class="pair" title="{}"><span>{}</span><div>{}{}</div>)"
                     R"(<span class="number"><span class="soft">{} →</span> {}</span></div>)",
                     escaped(title), escaped(label), bar(before, "before"), bar(after, "after"),
                     grouped(before), grouped(after));
}

// The length in bytes of the UTF-8 character at `at`; 0 if the bytes there are not valid UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

// One curve of a sweep, about as large as it is shown, so that its text keeps its size.
std::string curve(const Simulation& simulation, std::string_view title,
                  const std::function<double(const Outcome&)>& value,
                  const std::function<std::string(double)>& text, double logged) {
  constexpr double kWidth = 300;
  constexpr double kLeft = 14;
  constexpr double kTop = 26;
  constexpr double kGround = 150;
  const auto& outcomes = simulation.outcomes;
  double most = logged;
  for (const Outcome& outcome : outcomes) most = std::max(most, value(outcome));
  const double step =
      (kWidth - 2 * kLeft - 12) / std::max<double>(1, static_cast<double>(outcomes.size()) - 1);
  const auto x = [&](std::size_t i) { return kLeft + 6 + step * static_cast<double>(i); };
  const auto y = [&](double v) { return kGround - (most == 0 ? 0 : (kGround - kTop) * v / most); };
  std::string points;
  std::string dots;
  const std::size_t every = (outcomes.size() + 9) / 10;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double v = value(outcomes[i]);
    points += fmt::format("{:.1f},{:.1f} ", x(i), y(v));
    dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3"><title>{}: {}</title></circle>)",
                        x(i), y(v), escaped(outcomes[i].name), text(v));
    if (i % every == 0 || i + 1 == outcomes.size()) {
      dots += fmt::format(R"(<text x="{:.1f}" y="{}">{}</text>)", x(i), kGround + 16,
                          outcomes[i].sweep_limit.value_or(0));
    }
  }
  std::string line;
  if (logged != 0) {
    line = fmt::format(R"(<line class="logged" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)",
                       kLeft, kWidth - kLeft, y(logged));
  }
  // Above the first point where the curve falls, below where it rises; and never on the dashes.
  const bool rises = outcomes.size() > 1 && value(outcomes[1]) > value(outcomes[0]);
  constexpr double kAbove = -9;
  constexpr double kBelow = 18;
  const double last = y(value(outcomes.back()));
  const double below_dashes = logged == 0 ? 0 : last - y(logged);
  const bool too_near = below_dashes > 2 && below_dashes < 24;
  return fmt::format(
      R"(<figure><figcaption>{}{}</figcaption><svg viewBox="0 0 {} 190" role="img" aria-label="{}">)"
      R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>{}<polyline points="{}"/>{})"
      R"(<text class="value" x="{:.1f}" y="{:.1f}">{}</text><text class="value" x="{:.1f}" y="{:.1f}">{}</text>)"
      R"(<text x="{}" y="184">limit</text></svg></figure>)",
      escaped(title), logged != 0 ? R"( <span class="soft">(dashed: logged)</span>)" : "", kWidth,
      escaped(title), kLeft, kWidth - kLeft, kGround, kGround, line, points, dots, x(0) + 14,
      y(value(outcomes.front())) + (rises ? kBelow : kAbove), text(value(outcomes.front())),
      x(outcomes.size() - 1) - 14, last + (too_near ? kBelow : kAbove),
      text(value(outcomes.back())), kWidth / 2);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length != 1) {
      out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(i, length);
      i += std::max<std::size_t>(length, 1);
      continue;
    }
    const char byte = text[i++];
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
  const auto buckets = frequency_buckets(std::max(before.most(), after.most()));
  std::uint64_t most = 1;
  for (const FrequencyBucket& bucket : buckets) {
    most = std::max({most, before.between(bucket.first, bucket.last),
                     after.between(bucket.first, bucket.last)});
  }
  std::string html = R"(<div class="pairs">)";
  for (const FrequencyBucket& bucket : buckets) {
    const std::uint64_t was = before.between(bucket.first, bucket.last);
    const std::uint64_t is = after.between(bucket.first, bucket.last);
    const std::string title =
        fmt::format("{} with {} {}: {} as logged, {} with the rules", of, bucket.label(),
                    bucket.last == 1 ? "impression" : "impressions", grouped(was), grouped(is));
    html += pair_of_bars(bucket.label(), was, is, most, title);
  }
  return html + "</div>";
}

std::string reach_table(const Frequencies& before, const Frequencies& after) {
  std::string html =
      R"(<div class="scroll"><table><thead><tr><th>Seen at least</th><th>Users as logged</th>)"
      "<th>with the rules</th><th>of all users reached</th></tr></thead><tbody>";
  for (const std::uint64_t step : reach_steps(std::max(before.most(), after.most()))) {
    html += fmt::format("<tr><td>{}+</td><td>{}</td><td>{}</td><td>{}</td></tr>", grouped(step),
                        grouped(before.at_least(step)), grouped(after.at_least(step)),
                        percent(after.at_least(step), after.at_least(1)));
  }
  return html + "</tbody></table></div>";
}

std::string days_plot(const Simulation& simulation, const Outcome& outcome) {
  constexpr std::size_t kDaysMax = 400;
  if (simulation.per_day.size() > kDaysMax) return "<p>The log spans too many days for a plot.</p>";
  const std::uint64_t most =
      *std::max_element(simulation.per_day.begin(), simulation.per_day.end());
  std::string html = R"(<div class="pairs days">)";
  for (std::size_t i = 0; i < simulation.per_day.size(); ++i) {
    const std::string day = day_text(simulation.first_day + static_cast<std::int64_t>(i));
    html += pair_of_bars(
        day, simulation.per_day[i], outcome.shown_per_day[i], most,
        fmt::format("{}: {} as logged, {} with the rules", day, grouped(simulation.per_day[i]),
                    grouped(outcome.shown_per_day[i])));
  }
  return html + "</div>";
}

std::string sweep_plots(const Simulation& simulation) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const auto mean = [](std::uint64_t sum, std::uint64_t count) {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  };
  const auto in_percent = [](double value) { return fmt::format("{:.1f} %", value); };
  const auto plain = [](double value) { return fmt::format("{:.1f}", value); };
  return R"(<div class="curves">)" +
         curve(
             simulation, "Impressions lost",
             [&](const Outcome& o) { return share(o.blocked, simulation.impressions); }, in_percent,
             0) +
         curve(
             simulation, "Users reached",
             [&](const Outcome& o) { return share(o.reach, simulation.reach); }, in_percent, 100) +
         curve(
             simulation, "Impressions per user",
             [&](const Outcome& o) { return mean(o.shown, o.reach); }, plain,
             mean(simulation.impressions, simulation.reach)) +
         "</div>";
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
