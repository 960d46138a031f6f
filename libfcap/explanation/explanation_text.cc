#include "explanation/explanation_text.h"

#include <algorithm>
#include <string_view>

#include "base/outside_text.h"
#include "base/time_text.h"
#include "rule_text/rule_words.h"

namespace fcap::explanation {
namespace {

using std::to_string;

// Writes one explanation.
class Writer {
 public:
  Writer(const Explanation& explanation, const InstantText& instant)
      : explanation_(explanation), instant_(instant) {}

  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string verdict(const CandidateExplanation& candidate) const;
  [[nodiscard]] std::string account(const RuleAccount& account) const;
  /// What makes all counts doubtful.
  [[nodiscard]] std::string doubts() const;
  /// Why the history was not read, or what it was read from.
  [[nodiscard]] std::string source() const;
  [[nodiscard]] std::string left_out() const;

 private:
  [[nodiscard]] std::string until(const std::optional<Instant>& eligible_at, bool reserved) const;

  const Explanation& explanation_;
  const InstantText& instant_;
};

std::string word(std::string_view text) {
  return std::string(text);
}

std::string name_of(const CandidateExplanation& candidate) {
  return base::printable(candidate.creative.empty()
                             ? candidate.campaign
                             : candidate.campaign + "/" + candidate.creative);
}

std::string window_text(const Window& window) {
  switch (window.kind) {
    case Window::Kind::kSliding:
      return "in any " + base::format_length(window.length);
    case Window::Kind::kFixed:
      return "in " + base::format_length(window.length) + " from the first";
    case Window::Kind::kCalendar: {
      std::string text = "per calendar " +
                         word(rule_text::word_of(rule_text::kCalendarUnitWords, window.unit)) +
                         " (" + window.time_zone;
      if (window.unit == CalendarUnit::kWeek) {
        text += ", from " + word(rule_text::word_of(rule_text::kWeekdayWords, window.week_start));
      }
      return text + ")";
    }
    case Window::Kind::kLifetime:
      return "in all that is retained";
  }
  return {};
}

std::string scope_text(const RuleAccount& account) {
  const Rule& rule = *account.rule;
  if (rule.scope == Scope::kUser) return "of everything for this user";
  return "of " + word(rule_text::word_of(rule_text::kScopeWords, rule.scope)) + " " +
         base::printable(account.target) + (rule.target == "*" ? " (default)" : "");
}

std::string limit_text(const Rule& rule) {
  const std::string type = word(rule_text::word_of(rule_text::kEventTypeWords, rule.event_type));
  if (!rule.limit) return "any number of " + type + "s";
  return "at most " + to_string(*rule.limit) + " " + type + (*rule.limit == 1 ? "" : "s");
}

std::string rule_line(const RuleAccount& account) {
  const Rule& rule = *account.rule;
  std::string text = "rule \"" + rule.id + "\": " + limit_text(rule) + " " + scope_text(account) +
                     " " + window_text(rule.window);
  if (rule.segment) text += ", for segment " + *rule.segment;
  if (rule.mode == Rule::Mode::kShadow) text += ", shadow: never caps";
  if (rule.enforcement == Rule::Enforcement::kHard) text += ", hard";
  return text;
}

std::string Writer::head() const {
  const std::string& user = explanation_.user;
  std::string text = "user " + (user.empty() ? std::string("(none)") : base::printable(user)) +
                     " at " + instant_(explanation_.at);
  text += explanation_.rules == nullptr
              ? std::string(", no rules")
              : ", rule set version " + to_string(explanation_.rules->version());
  if (explanation_.segments != nullptr) {
    text += ", stored segments version " + to_string(explanation_.segments->version());
  }
  return text;
}

// `reserved`: it takes into account that reservations expire.
std::string Writer::until(const std::optional<Instant>& eligible_at, bool reserved) const {
  if (!eligible_at) return "never passes with these rules";
  return "passes again " + instant_(*eligible_at) + " (in " +
         base::spoken_length(*eligible_at - explanation_.at) + ")" +
         (reserved ? ", or later if reservations are confirmed" : "");
}

std::string Writer::verdict(const CandidateExplanation& candidate) const {
  const Verdict& verdict = candidate.verdict;
  const std::string outcome = verdict.allowed ? "allowed  " : "refused  ";
  if (verdict.reason == Reason::kNoUser) return outcome + "no user id, nothing is looked up";
  if (verdict.reason == Reason::kInvalid) return outcome + "an id is empty or over 256 bytes";
  if (verdict.reason != Reason::kPassed && verdict.reason != Reason::kCapped) {
    return outcome + "without the history: " + word(to_string(verdict.reason));
  }
  if (!verdict.allowed) {
    return "capped   by rule \"" + std::string(verdict.rule_id) + "\", " +
           (verdict.complete ? "" : "at least ") + to_string(verdict.count) + " of " +
           to_string(verdict.limit) + "; " + until(verdict.eligible_at, verdict.provisional);
  }
  // A campaign without a rule, or with a typo in its id.
  if (candidate.applicable.empty() && candidate.replaced.empty()) return "allowed  no rule applies";
  return verdict.needs_reserve ? "allowed  a hard rule applies: reserve it before showing"
                               : "allowed";
}

std::string Writer::account(const RuleAccount& account) const {
  std::string text = "    " + rule_line(account) + "\n      ";
  if (!account.replaced_by.empty())
    return text + "replaced by rule \"" + account.replaced_by + "\"\n";
  text += (account.complete ? "" : "at least ") + to_string(account.count) + " counted since " +
          instant_(account.counted_from);
  if (account.reserved > 0) text += ", " + to_string(account.reserved) + " of them reserved";
  if (account.counted_until) text += " (window ends " + instant_(*account.counted_until) + ")";
  if (!account.stands_in_way) return text + ": passes\n";
  text += account.rule->mode == Rule::Mode::kShadow ? ": would cap; " : ": stands in the way; ";
  return text + until(account.eligible_at, account.reserved > 0) + "\n";
}

std::string Writer::source() const {
  std::string text;
  if (explanation_.reason != Reason::kPassed && explanation_.reason != Reason::kNoUser) {
    text = "  answered without the history (" + word(to_string(explanation_.reason)) +
           "): " + word(describe(explanation_.reason)) + "\n";
  }
  if (explanation_.record.stale) {
    text += "  read from a replica, which may lack the latest events: counts are lower bounds\n";
  }
  return text;
}

std::string Writer::left_out() const {
  const auto count = explanation_.record.left_out;
  if (!count) return {};
  return "As of " + instant_(explanation_.at) + ": " + to_string(*count) +
         (*count == 1 ? " later entry was" : " later entries were") +
         " left out. When an entry arrived is not recorded, so a check made at that instant may "
         "have known of fewer.\n";
}

std::string Writer::doubts() const {
  const RecordAccount& record = explanation_.record;
  std::string text = source();
  if (record.complete_since) {
    text += "  the record was trimmed for size: what is older than " +
            instant_(*record.complete_since) +
            " may be missing, and counts that reach further back are lower bounds\n";
  }
  if (record.missing_before == Instant::max()) {
    text +=
        "  no updater's configuration is in Redis, which may have lost its data: counts are lower "
        "bounds\n";
  } else if (record.missing_before) {
    text += "  the updater is rereading lost events: those before " +
            instant_(*record.missing_before) +
            " may be missing, and counts that reach further back are lower bounds\n";
  }
  return text;
}

}  // namespace

std::string verdicts_text(const Explanation& explanation, const InstantText& instant) {
  const Writer writer(explanation, instant);
  std::string text = writer.head() + "\n" + writer.source();
  std::size_t width = 0;
  for (const CandidateExplanation& candidate : explanation.candidates) {
    width = std::max(width, name_of(candidate).size());
  }
  for (const CandidateExplanation& candidate : explanation.candidates) {
    std::string name = name_of(candidate);
    name.resize(width, ' ');
    text += "  " + name + "  " + writer.verdict(candidate) + "\n";
  }
  return text + writer.left_out();
}

std::string rules_text(const Explanation& explanation, const InstantText& instant) {
  const Writer writer(explanation, instant);
  std::string text = writer.head();
  if (!explanation.time_zone_data.empty()) {
    text += ", time-zone data " + explanation.time_zone_data;
  }
  text += "\n" + writer.doubts();
  for (const CandidateExplanation& candidate : explanation.candidates) {
    text += "  " + name_of(candidate) + ": " + writer.verdict(candidate) + "\n";
    for (const RuleAccount& account : candidate.applicable) text += writer.account(account);
    for (const RuleAccount& account : candidate.replaced) text += writer.account(account);
  }
  return text + writer.left_out();
}

}  // namespace fcap::explanation

namespace fcap {

std::string explanation_text(const Explanation& explanation) {
  return explanation::rules_text(explanation,
                                 [](Instant instant) { return base::format_instant(instant); });
}

}  // namespace fcap
