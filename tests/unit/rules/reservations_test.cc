#include <gtest/gtest.h>

#include "rules/reservation_state.h"
#include "tests/unit/rules/rules_fixture.h"

// What docs/semantics.md says of reservations in plain checks.
namespace fcap::rules {
namespace reservations_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
constexpr std::int64_t kNowMs = 1'774'746'000'000;

Rule campaign_rule(std::uint32_t limit, Window window = sliding(24h)) {
  return {.id = "r", .target = "c1", .limit = limit, .window = std::move(window)};
}

TEST(Reservations, OneThatIsLiveCountsLikeAnEventAtItsTime) {
  Scene scene;
  scene.rule(campaign_rule(2));
  scene.event("c1", kNowMs - kHourMs);
  scene.reserve("c1", kNowMs - kMinuteMs, kNowMs + kMinuteMs);
  const Verdict verdict = scene.check("c1", kNowMs);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.count, 2U);
  EXPECT_TRUE(scene.check("c2", kNowMs).allowed);
}

TEST(Reservations, CountInEveryScope) {
  for (const Scope scope :
       {Scope::kCampaign, Scope::kCreative, Scope::kAdvertiser, Scope::kGroup, Scope::kUser}) {
    Scene scene;
    scene.campaign({.id = "c1", .advertiser_id = "a1", .groups = {"g1"}});
    scene.campaign({.id = "c2", .advertiser_id = "a1", .groups = {"g1"}});
    scene.rule({.id = "r",
                .scope = scope,
                .target = scope == Scope::kUser ? "" : "*",
                .limit = 2,
                .window = sliding(24h)});
    const bool own = scope == Scope::kCampaign || scope == Scope::kCreative;
    scene.reserve("c1", kNowMs - 1, kNowMs + 1, "k1");
    EXPECT_TRUE(scene.check(Candidate{"c1", "k1"}, kNowMs).allowed) << static_cast<int>(scope);
    scene.reserve(own ? "c1" : "c2", kNowMs - 2, kNowMs + 1, "k1");
    EXPECT_FALSE(scene.check(Candidate{"c1", "k1"}, kNowMs).allowed) << static_cast<int>(scope);
  }
}

TEST(Reservations, DoNotCountOnceTheyExpireAreReleasedOrConfirmed) {
  Scene scene;
  scene.rule(campaign_rule(1));
  scene.reserve("c1", kNowMs - kMinuteMs, kNowMs);
  scene.reserve("c1", kNowMs - kMinuteMs, kNowMs + kMinuteMs, "", true);
  EXPECT_FALSE(scene.check("c1", kNowMs - 1).allowed);
  EXPECT_TRUE(scene.check("c1", kNowMs).allowed);

  const std::uint32_t print = scene.reserve("c1", kNowMs - kMinuteMs, kNowMs + kMinuteMs);
  EXPECT_FALSE(scene.check("c1", kNowMs).allowed);
  scene.ledger().merge(ledger::Entry{.time = instant_from_ms(kNowMs - 25 * kHourMs),
                                     .campaign = ledger::id_hash("c1"),
                                     .creative = 0,
                                     .type = EventType::kImpression,
                                     .fingerprint = print});
  EXPECT_TRUE(scene.check("c1", kNowMs).allowed) << "its entry counts, and that is a day old";
}

// Few and many are matched with their entries in different ways.
TEST(Reservations, HoweverManyThereAreEachIsConfirmedByItsOwnEntryAlone) {
  for (const std::uint32_t reserved : {1U, 8U, 9U, 60U}) {
    Scene scene;
    scene.rule(campaign_rule(1000));
    std::uint32_t live = 0;
    for (std::uint32_t i = 0; i < reserved; ++i) {
      const bool is_over = i % 5 == 1;
      const std::uint32_t print = scene.reserve(
          "c1", kNowMs - kMinuteMs, is_over ? kNowMs : kNowMs + kMinuteMs, "", i % 5 == 2);
      const bool is_confirmed = i % 3 == 1;
      // The rule's window does not reach the entry, and the retention does.
      const ledger::Entry entry{.time = instant_from_ms(kNowMs - 25 * kHourMs - i % 7),
                                .campaign = ledger::id_hash("c1"),
                                .creative = 0,
                                .type = EventType::kImpression,
                                .fingerprint = print};
      if (is_confirmed) scene.ledger().merge(entry);
      live += !is_over && i % 5 != 2 && !is_confirmed ? 1 : 0;
    }
    scene.event("c1", kNowMs - kHourMs);
    scene.reserve("c2", kNowMs - kMinuteMs, kNowMs + kMinuteMs);
    const CandidateExplanation told = scene.explain(Candidate{"c1"}, kNowMs);
    ASSERT_EQ(told.applicable.size(), 1U);
    EXPECT_EQ(told.applicable[0].reserved, live) << reserved;
    EXPECT_EQ(told.applicable[0].count, live + 1) << reserved;
    EXPECT_EQ(live_reservations(scene.ledger(), instant_from_ms(kNowMs)), live + 1) << reserved;
  }
}

TEST(Reservations, OneWhoseTimeIsMoreThanFiveMinutesAheadDoesNotCount) {
  Scene scene;
  scene.rule(campaign_rule(1));
  scene.reserve("c1", kNowMs + 5 * kMinuteMs, kNowMs + kHourMs);
  EXPECT_FALSE(scene.check("c1", kNowMs).allowed);
  EXPECT_TRUE(scene.check("c1", kNowMs - 1).allowed);
}

TEST(Reservations, AnErasureTakesThem) {
  Scene scene;
  scene.rule(campaign_rule(1));
  scene.reserve("c1", kNowMs - kMinuteMs, kNowMs + kMinuteMs);
  scene.ledger().erase_before(instant_from_ms(kNowMs - kMinuteMs));
  EXPECT_TRUE(scene.check("c1", kNowMs).allowed);
}

TEST(Reservations, TheEarliestInstantIsTheOneIfNoneIsConfirmed) {
  Scene scene;
  scene.rule(campaign_rule(2));
  scene.event("c1", kNowMs - 20 * kHourMs);
  scene.reserve("c1", kNowMs - 1, kNowMs + 5 * kMinuteMs);
  scene.reserve("c1", kNowMs - 2, kNowMs + 9 * kMinuteMs);
  const Verdict verdict = scene.check("c1", kNowMs);
  EXPECT_EQ(verdict.count, 3U);
  EXPECT_EQ(eligible_ms(verdict), kNowMs + 9 * kMinuteMs) << "then one event is left of three";
  EXPECT_TRUE(verdict.provisional);
  EXPECT_FALSE(scene.check("c2", kNowMs).provisional);
}

TEST(Reservations, ACapThatNoReservationCouldMoveIsNotProvisional) {
  Scene scene;
  scene.rule(campaign_rule(1));
  scene.rule({.id = "u", .scope = Scope::kUser, .limit = 10, .window = sliding(24h)});
  scene.event("c1", kNowMs - kHourMs);
  scene.reserve("c2", kNowMs - 1, kNowMs + kMinuteMs);
  const Verdict verdict = scene.check("c1", kNowMs);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_FALSE(verdict.provisional);
  EXPECT_EQ(eligible_ms(verdict), kNowMs + 23 * kHourMs);
}

TEST(Reservations, ACapThatNeverEndsIsNotProvisional) {
  Scene scene;
  scene.rule({.id = "never", .scope = Scope::kUser, .limit = 0, .window = sliding(24h)});
  scene.rule(campaign_rule(1));
  scene.reserve("c1", kNowMs - 1, kNowMs + kMinuteMs);
  const Verdict verdict = scene.check("c1", kNowMs);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_FALSE(verdict.eligible_at.has_value());
  EXPECT_FALSE(verdict.provisional);
}

TEST(Reservations, DoNotOpenAFixedWindowForOthers) {
  Scene scene;
  scene.rule(campaign_rule(3, fixed(8h)));
  scene.reserve("c1", kNowMs, kNowMs + 20 * kHourMs);
  scene.event("c1", kNowMs + kHourMs);
  const auto account = [&](std::int64_t now_ms) {
    return scene.explain({"c1"}, now_ms).applicable.at(0);
  };
  EXPECT_EQ(account(kNowMs + 8 * kHourMs - 1).count, 2U);
  EXPECT_EQ(account(kNowMs + 8 * kHourMs).count, 1U) << "a window of its own is over";
  EXPECT_EQ(account(kNowMs + 9 * kHourMs).count, 0U);
  scene.reserve("c1", kNowMs + 2 * kHourMs, kNowMs + 20 * kHourMs);
  EXPECT_EQ(account(kNowMs + 9 * kHourMs - 1).reserved, 1U) << "in the window of the event";
  EXPECT_EQ(account(kNowMs + 9 * kHourMs).count, 0U);
}

TEST(Reservations, ExplainTellsThemFromEvents) {
  Scene scene;
  scene.rule(campaign_rule(5));
  scene.event("c1", kNowMs - kHourMs);
  scene.reserve("c1", kNowMs - 1, kNowMs + kMinuteMs);
  scene.reserve("c1", kNowMs - 1, kNowMs + kMinuteMs);
  const CandidateExplanation explanation = scene.explain({"c1"}, kNowMs);
  ASSERT_EQ(explanation.applicable.size(), 1U);
  EXPECT_EQ(explanation.applicable[0].count, 3U);
  EXPECT_EQ(explanation.applicable[0].reserved, 2U);
}

TEST(Reservations, WhatIsCertainDoesNotRestOnThem) {
  Scene scene;
  scene.rule(campaign_rule(2));
  scene.event("c1", kNowMs - kHourMs);
  scene.reserve("c1", kNowMs - 1, kNowMs + kMinuteMs);
  EXPECT_FALSE(scene.check("c1", kNowMs).allowed);
  EXPECT_FALSE(scene.evaluator().capped_until(0).has_value());
  scene.event("c1", kNowMs - 2 * kHourMs);
  EXPECT_EQ(scene.check("c1", kNowMs).count, 3U);
  const auto certain = scene.evaluator().capped_until(0);
  ASSERT_TRUE(certain.has_value());
  EXPECT_EQ(certain->count, 2U);
  EXPECT_EQ(certain->until, instant_from_ms(kNowMs + 22 * kHourMs));
}

TEST(Reservations, AShadowRuleCountsThemToo) {
  Scene scene;
  Rule shadow = campaign_rule(1);
  shadow.mode = Rule::Mode::kShadow;
  scene.rule(shadow);
  scene.reserve("c1", kNowMs - 1, kNowMs + kMinuteMs);
  EXPECT_TRUE(scene.check("c1", kNowMs).shadow_capped);
}

TEST(Reservations, HaveAState) {
  Scene scene;
  scene.reserve("c1", kNowMs, kNowMs + kMinuteMs);
  scene.reserve("c1", kNowMs, kNowMs);
  scene.reserve("c1", kNowMs, kNowMs + kMinuteMs, "", true);
  scene.reserve("c1", kNowMs + 6 * kMinuteMs, kNowMs + 7 * kMinuteMs);
  const auto states = [&] {
    std::vector<ReservationState> all;
    for (const ledger::Reservation& each : scene.ledger().reservations()) {
      all.push_back(state_of(scene.ledger(), each, instant_from_ms(kNowMs)));
    }
    return all;
  };
  using enum ReservationState;
  EXPECT_EQ(states(), (std::vector{kLive, kExpired, kReleased, kAhead}));
  EXPECT_EQ(live_reservations(scene.ledger(), instant_from_ms(kNowMs)), 1U);
  scene.ledger().merge(ledger::Entry{.time = instant_from_ms(kNowMs),
                                     .campaign = ledger::id_hash("c1"),
                                     .creative = 0,
                                     .type = EventType::kImpression,
                                     .fingerprint = 1});
  EXPECT_EQ(states()[0], kConfirmed);
}

TEST(HardRules, AVerdictSaysThatACandidateNeedsAReservation) {
  Scene scene;
  Rule hard = campaign_rule(2);
  hard.enforcement = Rule::Enforcement::kHard;
  scene.rule(hard);
  EXPECT_TRUE(scene.check("c1", kNowMs).needs_reserve);
  EXPECT_FALSE(scene.check("c2", kNowMs).needs_reserve);
  scene.event("c1", kNowMs - 2);
  scene.event("c1", kNowMs - 1);
  EXPECT_FALSE(scene.check("c1", kNowMs).allowed) << "otherwise it is checked like a soft one";
}

TEST(HardRules, OnlyThoseThatApplyAskForAReservation) {
  const auto needs = [](const auto& change, std::optional<Rule> other = {}) {
    Scene scene;
    Rule hard = campaign_rule(2);
    hard.enforcement = Rule::Enforcement::kHard;
    change(hard);
    scene.rule(hard);
    if (other) scene.rule(*other);
    scene.segments({"vip"});
    return scene.check("c1", kNowMs).needs_reserve;
  };
  EXPECT_TRUE(needs([](Rule&) {}));
  EXPECT_TRUE(needs([](Rule& rule) { rule.target = "*"; }));
  EXPECT_TRUE(needs([](Rule& rule) { rule.segment = "vip"; }));
  EXPECT_FALSE(needs([](Rule& rule) { rule.segment = "other"; }));
  EXPECT_FALSE(needs([](Rule& rule) { rule.mode = Rule::Mode::kShadow; }));
  EXPECT_FALSE(needs([](Rule& rule) { rule.limit.reset(); }));
  EXPECT_FALSE(needs([](Rule& rule) { rule.end = instant_from_ms(kNowMs); }));
  Rule soft = campaign_rule(9);
  soft.id = "soft";
  EXPECT_FALSE(needs([](Rule& rule) { rule.target = "*"; }, soft)) << "the default is put aside";
  soft.segment = "vip";
  EXPECT_FALSE(needs([](Rule&) {}, soft)) << "enforcement is no part of the key that is replaced";
}

}  // namespace reservations_test
}  // namespace fcap::rules
