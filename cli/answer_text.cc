// Answers for people.
#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "base/outside_text.h"
#include "base/time_text.h"
#include "cli/answer.h"
#include "cli/instants.h"
#include "rule_text/rule_words.h"
#include "rules/rule_set_access.h"

namespace fcap::cli {
namespace {

// `reserved`: it takes into account that reservations expire.
std::string until_text(const std::optional<Instant>& eligible_at, Instant at, bool reserved,
                       const LocalTime& local) {
  if (!eligible_at) return "never passes with these rules";
  return fmt::format("passes again {} (in {}){}", local.text(*eligible_at),
                     spoken(*eligible_at - at),
                     reserved ? ", or later if reservations are confirmed" : "");
}

std::string window_text(const Window& window) {
  switch (window.kind) {
    case Window::Kind::kSliding:
      return "in any " + base::format_length(window.length);
    case Window::Kind::kFixed:
      return "in " + base::format_length(window.length) + " from the first";
    case Window::Kind::kCalendar: {
      std::string text = fmt::format("per calendar {} ({}",
                                     rule_text::word_of(rule_text::kCalendarUnitWords, window.unit),
                                     window.time_zone);
      if (window.unit == CalendarUnit::kWeek) {
        text += fmt::format(", from {}",
                            rule_text::word_of(rule_text::kWeekdayWords, window.week_start));
      }
      return text + ")";
    }
    case Window::Kind::kLifetime:
      return "in all that is retained";
  }
  return {};
}

std::string scope_text(const rules::RuleAccount& account) {
  const Rule& rule = *account.rule;
  if (rule.scope == Scope::kUser) return "of everything for this user";
  std::string text = fmt::format("of {} {}", rule_text::word_of(rule_text::kScopeWords, rule.scope),
                                 base::printable(account.target));
  if (rule.target == "*") text += " (default)";
  return text;
}

std::string limit_text(const Rule& rule) {
  const auto type = rule_text::word_of(rule_text::kEventTypeWords, rule.event_type);
  if (!rule.limit) return fmt::format("any number of {}s", type);
  return fmt::format("at most {} {}{}", *rule.limit, type, *rule.limit == 1 ? "" : "s");
}

void print_account(const rules::RuleAccount& account, Instant at, const LocalTime& local,
                   std::ostream& out) {
  const Rule& rule = *account.rule;
  out << fmt::format("    rule \"{}\": {} {} {}", rule.id, limit_text(rule), scope_text(account),
                     window_text(rule.window));
  if (rule.segment) out << fmt::format(", for segment {}", *rule.segment);
  if (rule.mode == Rule::Mode::kShadow) out << ", shadow: never caps";
  if (rule.enforcement == Rule::Enforcement::kHard) out << ", hard";
  out << "\n";
  if (!account.replaced_by.empty()) {
    out << fmt::format("      replaced by rule \"{}\"\n", account.replaced_by);
    return;
  }
  out << fmt::format("      {}{} counted since {}", account.complete ? "" : "at least ",
                     account.count, local.text(account.counted_from));
  if (account.reserved > 0) out << fmt::format(", {} of them reserved", account.reserved);
  if (account.counted_until) {
    out << fmt::format(" (window ends {})", local.text(*account.counted_until));
  }
  if (!account.stands_in_way) {
    out << ": passes\n";
    return;
  }
  out << (rule.mode == Rule::Mode::kShadow ? ": would cap; " : ": stands in the way; ")
      << until_text(account.eligible_at, at, account.reserved > 0, local) << "\n";
}

std::string head_text(const Answer& answer, const LocalTime& local) {
  std::string text =
      fmt::format("user {} at {}, rule set version {}",
                  answer.question.user.empty() ? "(none)" : base::printable(answer.question.user),
                  local.text(answer.at), answer.by.rules->version());
  if (answer.by.segments) {
    text += fmt::format(", stored segments version {}", answer.by.segments->version());
  }
  return text;
}

std::string verdict_text(const rules::Explanation& explanation, Instant at,
                         const LocalTime& local) {
  const Verdict& verdict = explanation.verdict;
  if (verdict.reason == Reason::kNoUser) return "allowed  no user id, nothing is looked up";
  // A campaign without a rule, or with a typo in its id.
  if (explanation.applicable.empty() && explanation.replaced.empty()) {
    return "allowed  no rule applies";
  }
  if (verdict.allowed) {
    return verdict.needs_reserve ? "allowed  a hard rule applies: reserve it before showing"
                                 : "allowed";
  }
  return fmt::format("capped   by rule \"{}\", {}{} of {}; {}", verdict.rule_id,
                     verdict.complete ? "" : "at least ", verdict.count, verdict.limit,
                     until_text(verdict.eligible_at, at, verdict.provisional, local));
}

void print_stale(const Answer& answer, std::ostream& out) {
  if (!answer.by.stale) return;
  out << "  read from a replica, which may lack the latest events: counts are lower bounds\n";
}

}  // namespace

void print_verdicts(const Answer& answer, const LocalTime& local, std::ostream& out) {
  out << head_text(answer, local) << "\n";
  print_stale(answer, out);
  std::size_t width = 0;
  for (const CandidateText& candidate : answer.question.candidates) {
    width = std::max(width, base::printable(candidate.text()).size());
  }
  for (std::size_t i = 0; i < answer.explanations.size(); ++i) {
    out << fmt::format("  {:<{}}  {}\n", base::printable(answer.question.candidates[i].text()),
                       width, verdict_text(answer.explanations[i], answer.at, local));
  }
}

void print_explanations(const Answer& answer, const LocalTime& local, std::ostream& out) {
  out << fmt::format("{}, time-zone data {}\n", head_text(answer, local),
                     rules::RuleSetAccess::compiled(*answer.by.rules).zone_data_version);
  print_stale(answer, out);
  if (answer.complete_since) {
    out << fmt::format(
        "  the record was trimmed for size: what is older than {} may be missing, and counts that "
        "reach further back are lower bounds\n",
        local.text(*answer.complete_since));
  }
  if (answer.by.missing_before == Instant::max()) {
    out << "  no updater's configuration is in Redis, which may have lost its data: counts are "
           "lower "
           "bounds\n";
  } else if (answer.by.missing_before) {
    out << fmt::format(
        "  the updater is rereading lost events: those before {} may be missing, and counts "
        "that reach further back are lower bounds\n",
        local.text(*answer.by.missing_before));
  }
  for (std::size_t i = 0; i < answer.explanations.size(); ++i) {
    const rules::Explanation& explanation = answer.explanations[i];
    out << fmt::format("  {}: {}\n", base::printable(answer.question.candidates[i].text()),
                       verdict_text(explanation, answer.at, local));
    for (const auto& account : explanation.applicable)
      print_account(account, answer.at, local, out);
    for (const auto& account : explanation.replaced) print_account(account, answer.at, local, out);
  }
}

void print_left_out(const Answer& answer, const LocalTime& local, std::ostream& out) {
  if (!answer.left_out) return;
  out << fmt::format(
      "As of {}: {} left out. When an entry arrived is not recorded, so a check made at that "
      "instant may have known of fewer.\n",
      local.text(answer.at), counted(*answer.left_out, "later entry was", "later entries were"));
}

}  // namespace fcap::cli
