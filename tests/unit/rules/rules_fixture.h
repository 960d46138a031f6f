#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"
#include "tests/support/seed.h"

namespace fcap::rules {

[[nodiscard]] inline Window sliding(std::chrono::milliseconds length) {
  return {.kind = Window::Kind::kSliding, .length = length};
}
[[nodiscard]] inline Window fixed(std::chrono::milliseconds length) {
  return {.kind = Window::Kind::kFixed, .length = length};
}
[[nodiscard]] inline Window lifetime() {
  return {.kind = Window::Kind::kLifetime};
}
[[nodiscard]] inline Window calendar(CalendarUnit unit, std::string_view zone = "UTC",
                                     std::chrono::weekday week_start = std::chrono::Monday) {
  return {.kind = Window::Kind::kCalendar,
          .unit = unit,
          .time_zone = std::string(zone),
          .week_start = week_start};
}

/// -1 where there is none.
[[nodiscard]] inline std::int64_t eligible_ms(const Verdict& verdict) {
  return verdict.eligible_at ? to_ms(*verdict.eligible_at) : -1;
}

/// A rule set, a user's history and questions about them. The rule set is built at the first
/// question after a change.
class Scene {
 public:
  explicit Scene(std::chrono::milliseconds retention = std::chrono::days{32})
      : retention_(retention) {}

  void rule(Rule rule) {
    spec_.rules.push_back(std::move(rule));
    rules_.reset();
  }
  void campaign(Campaign campaign) {
    spec_.campaigns.push_back(std::move(campaign));
    rules_.reset();
  }
  void event(std::string_view campaign, std::int64_t at_ms, std::string_view creative = "",
             EventType type = EventType::kImpression) {
    ledger_.merge(ledger::Entry{.time = instant_from_ms(at_ms),
                                .campaign = ledger::id_hash(campaign),
                                .creative = ledger::id_hash(creative),
                                .type = type,
                                .fingerprint = next_fingerprint_++});
  }
  /// Reserves an impression; gives its event's fingerprint.
  std::uint32_t reserve(std::string_view campaign, std::int64_t at_ms, std::int64_t expires_ms,
                        std::string_view creative = "", bool released = false) {
    ledger_.merge(ledger::Reservation{.event = {.time = instant_from_ms(at_ms),
                                                .campaign = ledger::id_hash(campaign),
                                                .creative = ledger::id_hash(creative),
                                                .type = EventType::kImpression,
                                                .fingerprint = next_fingerprint_},
                                      .expires = instant_from_ms(expires_ms),
                                      .released = released});
    return next_fingerprint_++;
  }
  void segments(std::vector<std::string_view> names) { segments_ = std::move(names); }
  void stored(std::shared_ptr<const SegmentSet> set) { stored_ = std::move(set); }
  void user(std::string_view id) { user_ = id; }
  /// Events before it may be missing from all ledgers.
  void missing_before(std::optional<Instant> before) { missing_before_ = before; }

  Verdict check(Candidate candidate, std::int64_t now_ms) {
    const CandidateKey key = candidate_key(candidate);
    Verdict verdict;
    shadow_capped_ = evaluator_.evaluate(question(now_ms), {&key, 1}, {&verdict, 1});
    return verdict;
  }
  Verdict check(std::string_view campaign, std::int64_t now_ms) {
    return check(Candidate{campaign}, now_ms);
  }
  CandidateExplanation explain(Candidate candidate, std::int64_t now_ms) {
    return evaluator_.explain(question(now_ms), candidate);
  }
  /// What the last check found.
  [[nodiscard]] std::uint32_t shadow_capped() const { return shadow_capped_; }
  [[nodiscard]] ledger::Ledger& ledger() { return ledger_; }

  const std::shared_ptr<const RuleSet>& rules() {
    if (rules_ == nullptr) {
      auto built = RuleSet::build(spec_, {.retention = retention_});
      EXPECT_TRUE(built.ok()) << built.status().text();
      rules_ = built.value();
    }
    return rules_;
  }

  Evaluator::EvaluatorInput question(std::int64_t now_ms) {
    return {.rules = *rules(),
            .ledger = ledger_,
            .now = instant_from_ms(now_ms),
            .segments = segments_,
            .stored = stored_.get(),
            .user = user_,
            .completeness = Completeness(missing_before_)};
  }
  [[nodiscard]] Evaluator& evaluator() { return evaluator_; }

 private:
  std::chrono::milliseconds retention_;
  RuleSetSpec spec_;
  std::shared_ptr<const RuleSet> rules_;
  ledger::Ledger ledger_;
  std::vector<std::string_view> segments_;
  std::shared_ptr<const SegmentSet> stored_;
  std::string_view user_;
  std::optional<Instant> missing_before_;
  Evaluator evaluator_;
  std::uint32_t next_fingerprint_ = 1;
  std::uint32_t shadow_capped_ = 0;
};

}  // namespace fcap::rules
