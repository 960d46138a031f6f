#include "cli/simulate/wording.h"

#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/time_text.h"
#include "rule_text/rule_words.h"

namespace fcap::cli {
namespace {

std::string counted(std::uint64_t number, std::string_view one) {
  return fmt::format("{} {}{}", grouped(number), one, number == 1 ? "" : "s");
}

// "24 hours", "7 days": what planners say, not "1d".
std::string length_text(std::chrono::milliseconds length) {
  if (length % std::chrono::days{1} == std::chrono::days{0} && length > std::chrono::days{1}) {
    return counted(static_cast<std::uint64_t>(length / std::chrono::days{1}), "day");
  }
  if (length % std::chrono::hours{1} == std::chrono::hours{0}) {
    return counted(static_cast<std::uint64_t>(length / std::chrono::hours{1}), "hour");
  }
  return base::format_length(length);
}

std::string scope_text(const Rule& rule) {
  if (rule.scope == Scope::kUser) return "of everything for each user";
  const auto scope = rule_text::word_of(rule_text::kScopeWords, rule.scope);
  return rule.target == "*" ? fmt::format("of each {}", scope)
                            : fmt::format("of {} {}", scope, rule.target);
}

std::string window_text(const Window& window) {
  switch (window.kind) {
    case Window::Kind::kSliding:
      return "in any " + length_text(window.length);
    case Window::Kind::kFixed:
      return "in " + length_text(window.length) + " from the first";
    case Window::Kind::kCalendar:
      return fmt::format("per calendar {} ({})",
                         rule_text::word_of(rule_text::kCalendarUnitWords, window.unit),
                         window.time_zone);
    case Window::Kind::kLifetime:
      return "ever";
  }
  return {};
}

struct DateParts {
  int year = 0;
  unsigned month = 1;
  unsigned day = 1;
};

constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};

DateParts date_of(std::int64_t day) {
  const std::chrono::sys_days at{std::chrono::days{day}};
  const std::chrono::year_month_day date{at};
  return {int{date.year()}, unsigned{date.month()}, unsigned{date.day()}};
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

// Rounded half up, in whole numbers, as the page does: 27.395 has no exact binary fraction.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t hundredths = whole == 0 ? 0 : (part * 20'000 + whole) / (2 * whole);
  return fmt::format("{}.{:02} %", hundredths / 100, hundredths % 100);
}

std::string average(std::uint64_t sum, std::uint64_t count) {
  const std::uint64_t tenths = count == 0 ? 0 : (sum * 20 + count) / (2 * count);
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

std::string worth(std::uint64_t impressions, const std::optional<double>& cpm) {
  if (!cpm) return {};
  constexpr double kPerThousand = 1000;
  const auto cents = static_cast<std::uint64_t>(
      std::llround(100 * *cpm * static_cast<double>(impressions) / kPerThousand));
  return fmt::format("{}.{:02}", grouped(cents / 100), cents % 100);
}

std::string day_text(std::int64_t day) {
  const DateParts date = date_of(day);
  return fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
}

std::string period_text(std::int64_t first_day, std::int64_t last_day) {
  const DateParts first = date_of(first_day);
  const DateParts last = date_of(last_day);
  const auto text = [](const DateParts& date, bool with_month, bool with_year) {
    std::string out = std::to_string(date.day);
    if (with_month) out.append(" ").append(kMonths[date.month - 1]);
    if (with_year) out.append(" ").append(std::to_string(date.year));
    return out;
  };
  if (first_day == last_day) return text(last, true, true);
  if (first.year != last.year) return text(first, true, true) + " – " + text(last, true, true);
  if (first.month != last.month) return text(first, true, false) + " – " + text(last, true, true);
  return text(first, false, false) + "–" + text(last, true, true);
}

std::string description_of(const Rule& rule) {
  std::string text;
  if (!rule.limit) {
    text = fmt::format("any number {}", scope_text(rule));
  } else if (*rule.limit == 0) {
    text = fmt::format("nothing {}", scope_text(rule));
  } else {
    const auto type = rule_text::word_of(rule_text::kEventTypeWords, rule.event_type);
    text = fmt::format("at most {} {} {}",
                       counted(*rule.limit, type == "viewable" ? "viewable impression" : type),
                       scope_text(rule), window_text(rule.window));
  }
  if (rule.segment) text += fmt::format(", for segment {}", *rule.segment);
  if (rule.mode == Rule::Mode::kShadow) text += ", shadow: never blocks";
  if (rule.enforcement == Rule::Enforcement::kHard) text += ", hard";
  return text;
}

std::string log_sentence(const Simulation& simulation) {
  const std::int64_t days = static_cast<std::int64_t>(simulation.per_day.size());
  return fmt::format(
      "The log: {} of {} to {}, {} ({}).", counted(simulation.impressions, "impression"),
      counted(simulation.campaigns, "campaign"), counted(simulation.reach, "user"),
      period_text(simulation.first_day, simulation.first_day + days - 1), simulation.time_zone);
}

std::string headline(const Simulation& simulation, const SimulationOutcome& outcome) {
  if (outcome.blocked == 0) {
    return fmt::format("Under {}, every impression would still have been shown.", outcome.name);
  }
  std::string text =
      fmt::format("Under {}, {} of the impressions ({} of {}) would not have been shown. ",
                  outcome.name, percent(outcome.blocked, simulation.impressions),
                  grouped(outcome.blocked), grouped(simulation.impressions));
  if (outcome.reach == simulation.reach) {
    text += fmt::format("All {} would still have been reached", counted(outcome.reach, "user"));
  } else {
    text += fmt::format("{} of {} would still have been reached", grouped(outcome.reach),
                        counted(simulation.reach, "user"));
  }
  if (outcome.reach == 0) return text + ".";
  return text +
         fmt::format(", and each of them would have seen {} impressions on average instead of {}.",
                     average(outcome.shown, outcome.reach),
                     average(simulation.impressions, simulation.reach));
}

}  // namespace fcap::cli
