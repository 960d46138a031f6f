#include "cli/simulate/wording.h"

#include <fmt/format.h>

#include "config/rule_words.h"
#include "config/time_text.h"

namespace fcap::cli {
namespace {

std::string counted(std::uint64_t number, std::string_view one) {
  return fmt::format("{} {}{}", grouped(number), one, number == 1 ? "" : "s");
}

/// "24 hours", "7 days": what planners say, not "1d".
std::string length_text(std::chrono::milliseconds length) {
  if (length % std::chrono::days{1} == std::chrono::days{0} && length > std::chrono::days{1}) {
    return counted(static_cast<std::uint64_t>(length / std::chrono::days{1}), "day");
  }
  if (length % std::chrono::hours{1} == std::chrono::hours{0}) {
    return counted(static_cast<std::uint64_t>(length / std::chrono::hours{1}), "hour");
  }
  return config::format_length(length);
}

std::string scope_text(const Rule& rule) {
  if (rule.scope == Scope::kUser) return "of everything for each user";
  const auto scope = config::word_of(config::kScopeWords, rule.scope);
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
                         config::word_of(config::kCalendarUnitWords, window.unit),
                         window.time_zone);
    case Window::Kind::kLifetime:
      return "ever";
  }
  return {};
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

/// Rounded half up, in whole numbers: 27.395 has no exact binary fraction.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t hundredths = whole == 0 ? 0 : (part * 20'000 + whole) / (2 * whole);
  return fmt::format("{}.{:02} %", hundredths / 100, hundredths % 100);
}

std::string average(std::uint64_t sum, std::uint64_t count) {
  return fmt::format("{:.1f}",
                     count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count));
}

std::string frequency_label(std::size_t index) {
  return index + 1 == std::tuple_size_v<Frequencies> ? "10+" : std::to_string(index + 1);
}

std::string description_of(const Rule& rule) {
  std::string text;
  if (!rule.limit) {
    text = fmt::format("any number {}", scope_text(rule));
  } else if (*rule.limit == 0) {
    text = fmt::format("nothing {}", scope_text(rule));
  } else {
    const auto type = config::word_of(config::kEventTypeWords, rule.event_type);
    text = fmt::format("at most {} {} {}",
                       counted(*rule.limit, type == "viewable" ? "viewable impression" : type),
                       scope_text(rule), window_text(rule.window));
  }
  if (rule.segment) text += fmt::format(", for segment {}", *rule.segment);
  if (rule.mode == Rule::Mode::kShadow) text += ", shadow: never blocks";
  return text;
}

std::string log_sentence(const Simulation& simulation) {
  return fmt::format(
      "The log: {} of {} to {}, from {} to {}.", counted(simulation.impressions, "impression"),
      counted(simulation.campaigns, "campaign"), counted(simulation.reach, "user"),
      config::format_instant(simulation.first_at), config::format_instant(simulation.last_at));
}

std::string headline(const Simulation& simulation, const Outcome& outcome) {
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
