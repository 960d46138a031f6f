#include "rules/reserve_decision.h"

#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace reserve_decision_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kNowMs = 1'774'746'000'000;
constexpr Instant kNow = instant_from_ms(kNowMs);

CandidateKey key(std::string_view campaign, std::string_view creative = "") {
  return candidate_key({campaign, creative});
}

ReserveDecision decide(Scene& scene, std::uint32_t fingerprint, std::string_view campaign = "c1") {
  return decide_reserve(scene.evaluator(), scene.question(kNowMs),
                        {.candidate = key(campaign), .fingerprint = fingerprint});
}

Rule rule(std::uint32_t limit) {
  return {.id = "r", .target = "*", .limit = limit, .window = sliding(24h)};
}

ledger::Entry entry(std::string_view campaign, std::uint32_t fingerprint) {
  return {.time = kNow - 3min,
          .campaign = ledger::id_hash(campaign),
          .creative = 0,
          .type = EventType::kImpression,
          .fingerprint = fingerprint};
}

TEST(ReserveDecision, AnEventWithinTheLimitIsGrantedAndTheNextOneRefused) {
  Scene scene;
  scene.rule(rule(2));
  scene.event("c1", kNowMs - kMinuteMs);
  const ReserveDecision granted = decide(scene, 77);
  EXPECT_EQ(granted.answer, ReserveAnswer::kGranted);
  EXPECT_EQ(granted.time, kNow);
  scene.reserve("c1", kNowMs, kNowMs + kMinuteMs);
  const ReserveDecision refused = decide(scene, 78);
  EXPECT_EQ(refused.answer, ReserveAnswer::kCapped);
  EXPECT_EQ(refused.verdict.rule_id, "r");
  EXPECT_EQ(refused.verdict.count, 2U);
}

TEST(ReserveDecision, OneThatIsReservedIsAllowedAgainAndKeepsItsExpiry) {
  Scene scene;
  scene.rule(rule(1));
  const std::uint32_t print = scene.reserve("c1", kNowMs - 5, kNowMs + kMinuteMs);
  const ReserveDecision held = decide(scene, print);
  EXPECT_EQ(held.answer, ReserveAnswer::kHeld);
  EXPECT_EQ(held.time, kNow - 5ms);
  EXPECT_EQ(held.expires, kNow + 1min);
  EXPECT_EQ(decide(scene, print, "c2").answer, ReserveAnswer::kGranted)
      << "the campaign is part of the identity";
}

TEST(ReserveDecision, OneThatIsConfirmedIsAllowedEvenAfterItsRelease) {
  Scene scene;
  scene.rule(rule(0));
  const std::uint32_t print = scene.reserve("c1", kNowMs - 5, kNowMs + kMinuteMs, "", true);
  EXPECT_EQ(decide(scene, print).answer, ReserveAnswer::kReleased);
  scene.ledger().merge(entry("c1", print));
  const ReserveDecision confirmed = decide(scene, print);
  EXPECT_EQ(confirmed.answer, ReserveAnswer::kConfirmed);
  EXPECT_EQ(confirmed.time, kNow - 3min);
}

TEST(ReserveDecision, OneThatHasExpiredIsEvaluatedAgain) {
  Scene scene;
  scene.rule(rule(1));
  const std::uint32_t print = scene.reserve("c1", kNowMs - kMinuteMs, kNowMs);
  EXPECT_EQ(decide(scene, print).answer, ReserveAnswer::kGranted);
  scene.event("c1", kNowMs - 1);
  EXPECT_EQ(decide(scene, print).answer, ReserveAnswer::kCapped);
}

TEST(ReserveDecision, SoftAndHardRulesRefuseAlikeAndShadowRulesDoNot) {
  for (const auto enforcement : {Rule::Enforcement::kSoft, Rule::Enforcement::kHard}) {
    Scene scene;
    Rule capped = rule(1);
    capped.enforcement = enforcement;
    scene.rule(capped);
    scene.event("c1", kNowMs - 1);
    EXPECT_EQ(decide(scene, 77).answer, ReserveAnswer::kCapped);
  }
  Scene scene;
  Rule shadow = rule(1);
  shadow.mode = Rule::Mode::kShadow;
  scene.rule(shadow);
  scene.event("c1", kNowMs - 1);
  EXPECT_EQ(decide(scene, 77).answer, ReserveAnswer::kGranted);
}

TEST(ReserveDecision, ARuleThatReachesIntoWhatTheRecordLacksRefuses) {
  Scene scene;
  scene.rule(rule(2));
  scene.missing_before(kNow - 1h);
  EXPECT_EQ(decide(scene, 77).answer, ReserveAnswer::kIncomplete);
  scene.event("c1", kNowMs - 1);
  scene.event("c1", kNowMs - 2);
  EXPECT_EQ(decide(scene, 77).answer, ReserveAnswer::kCapped) << "that is known all the same";
  scene.missing_before(kNow - 24h);
  EXPECT_EQ(decide(scene, 77, "c2").answer, ReserveAnswer::kGranted);
}

TEST(ReserveDecision, AnErasureAheadOfNowDoesNotSwallowWhatIsWritten) {
  Scene scene;
  scene.rule(rule(1));
  scene.ledger().erase_before(kNow + 1min);
  EXPECT_EQ(decide(scene, 77).time, kNow + 1min + 1ms);
}

TEST(ReserveDecision, AnErasureTooFarAheadLetsNothingBeReserved) {
  for (const auto& [ahead, answer] : {std::pair{5min - 1ms, ReserveAnswer::kCapped},
                                      std::pair{5min + 0ms, ReserveAnswer::kIncomplete}}) {
    Scene scene;
    scene.rule(rule(1));
    scene.ledger().erase_before(kNow + ahead);
    const Instant time = decide(scene, 77).time;
    scene.reserve("c1", to_ms(time), to_ms(time + 15min));
    EXPECT_EQ(decide(scene, 78).answer, answer) << "what was reserved does not count yet";
  }
}

// 0 s is reserved and confirmed last. Until then the window of the entry at 50 s closes at 110 s;
// afterwards the windows open at 0 s and at 70 s.
TEST(ReserveDecision, AFixedWindowHoldsInWhateverOrderReservationsAreConfirmed) {
  const auto at_ms = [](std::int64_t seconds) { return kNowMs + (seconds - 112) * 1000; };
  for (const bool is_live : {true, false}) {
    Scene scene;
    scene.rule({.id = "r", .target = "*", .limit = 2, .window = fixed(60s)});
    scene.reserve("c1", at_ms(0), at_ms(is_live ? 900 : 100));
    scene.event("c1", at_ms(50));
    scene.event("c1", at_ms(70));
    scene.reserve("c1", at_ms(111), at_ms(900));
    const ReserveDecision decision = decide(scene, 77);
    EXPECT_EQ(decision.answer, is_live ? ReserveAnswer::kCapped : ReserveAnswer::kGranted);
    if (!is_live) continue;
    EXPECT_EQ(decision.verdict.count, 2U);
    EXPECT_EQ(eligible_ms(decision.verdict), at_ms(130));
  }
}

TEST(ReserveDecision, AnIdStandsForOneCreativeOfItsCampaign) {
  Scene scene;
  scene.rule(
      {.id = "r", .scope = Scope::kCreative, .target = "red", .limit = 1, .window = sliding(24h)});
  scene.event("c2", kNowMs - 1, "red");
  const std::uint32_t print = scene.reserve("c1", kNowMs - 5, kNowMs + kMinuteMs, "blue");
  const auto answer = [&](std::string_view creative) {
    return decide_reserve(scene.evaluator(), scene.question(kNowMs),
                          {.candidate = key("c1", creative), .fingerprint = print})
        .answer;
  };
  const auto answer_to_shown = [&](std::string_view creative) {
    const WantedEvent shown{.candidate = key("c1", creative), .fingerprint = print};
    return decide_shown(scene.ledger(), shown, kNow).answer;
  };
  EXPECT_EQ(answer("blue"), ReserveAnswer::kHeld);
  EXPECT_EQ(answer("red"), ReserveAnswer::kOtherCreative);
  EXPECT_EQ(answer(""), ReserveAnswer::kOtherCreative);
  EXPECT_EQ(answer_to_shown("red"), ReserveAnswer::kHeld) << "recorded with the reservation's time";
  ledger::Entry confirmed = entry("c1", print);
  confirmed.creative = ledger::id_hash("blue");
  scene.ledger().merge(confirmed);
  EXPECT_EQ(answer("blue"), ReserveAnswer::kConfirmed);
  EXPECT_EQ(answer("red"), ReserveAnswer::kOtherCreative);
  EXPECT_EQ(answer_to_shown("red"), ReserveAnswer::kOtherCreative) << "two impressions of one id";
}

TEST(ReserveDecision, WhatWasShownIsGrantedAfterAReleaseAndAnErasure) {
  Scene scene;
  const std::uint32_t released = scene.reserve("c1", kNowMs - 5, kNowMs + kMinuteMs, "", true);
  scene.ledger().erase_before(kNow + 6min);
  for (const std::uint32_t print : {released, 77U}) {
    const ReserveDecision shown =
        decide_shown(scene.ledger(), {.candidate = key("c1"), .fingerprint = print}, kNow);
    EXPECT_EQ(shown.answer, ReserveAnswer::kGranted);
    EXPECT_EQ(shown.time, kNow + 6min + 1ms);
  }
}

}  // namespace reserve_decision_test
}  // namespace fcap::rules
