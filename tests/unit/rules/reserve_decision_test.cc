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

// What decide_picks() says for slots with the fingerprints 1000, 1001, …
class Page {
 public:
  explicit Page(Scene& scene) : scene_(scene) {}

  std::vector<SlotPick> pick(const std::vector<CandidateKey>& candidates, std::size_t slots) {
    std::vector<std::uint32_t> fingerprints(slots);
    for (std::size_t i = 0; i < slots; ++i) fingerprints[i] = static_cast<std::uint32_t>(1000 + i);
    written.clear();
    return decide_picks(scene_.evaluator(), scene_.ledger(), scene_.question(kNowMs),
                        {.candidates = candidates, .fingerprints = fingerprints, .life = 15min},
                        written);
  }

  std::vector<ledger::Reservation> written;

 private:
  Scene& scene_;
};

TEST(ReservePicks, EachCountsForTheNext) {
  Scene scene;
  scene.rule({.id = "g", .scope = Scope::kUser, .limit = 2, .window = sliding(24h)});
  Page page(scene);
  const auto picks = page.pick({key("c1"), key("c2"), key("c3")}, 3);
  ASSERT_EQ(picks.size(), 3U);
  EXPECT_EQ(picks[0].candidate, 0U);
  EXPECT_EQ(picks[1].candidate, 1U);
  EXPECT_FALSE(picks[2].candidate.has_value());
  EXPECT_EQ(picks[2].answer, ReserveAnswer::kCapped);
  ASSERT_EQ(page.written.size(), 2U);
  EXPECT_EQ(page.written[1].event.fingerprint, 1001U);
  EXPECT_EQ(page.written[1].event.campaign, key("c2").campaign);
  EXPECT_EQ(page.written[1].expires, kNow + 15min);
}

TEST(ReservePicks, ARepetitionGivesTheFirstAnswer) {
  Scene scene;
  scene.rule(rule(1));
  scene.event("c1", kNowMs - 1);
  Page page(scene);
  const std::vector candidates{key("c1"), key("c2", "k1"), key("c2", "k2"), key("c3")};
  const auto first = page.pick({key("c1"), key("c2", "k2"), key("c3")}, 2);
  EXPECT_EQ(first[0].candidate, 1U);
  const auto again = page.pick(candidates, 2);
  EXPECT_EQ(again[0].candidate, 2U) << "the creative that was reserved";
  EXPECT_EQ(again[0].answer, ReserveAnswer::kHeld);
  EXPECT_EQ(again[1].candidate, 3U);
  EXPECT_TRUE(page.written.empty());
}

TEST(ReservePicks, OnlySlotsWithoutAPickAreEvaluated) {
  Scene scene;
  scene.rule(rule(1));
  scene.ledger().merge(entry("c2", 1000));
  Page page(scene);
  const auto picks = page.pick({key("c2"), key("c1")}, 2);
  EXPECT_EQ(picks[0].candidate, 0U);
  EXPECT_EQ(picks[0].answer, ReserveAnswer::kConfirmed);
  EXPECT_EQ(picks[1].candidate, 1U);
  EXPECT_EQ(picks[1].answer, ReserveAnswer::kGranted);
  EXPECT_EQ(page.written.size(), 1U);
}

TEST(ReservePicks, WhatWasReleasedUnderOneSlotMayBeShownInAnother) {
  Scene scene;
  scene.rule(rule(1));
  ledger::Reservation released{.event = entry("c1", 1000), .expires = kNow + 1min};
  released.released = true;
  scene.ledger().merge(released);
  Page page(scene);
  const auto picks = page.pick({key("c1"), key("c2")}, 2);
  EXPECT_EQ(picks[0].candidate, 1U);
  EXPECT_EQ(picks[1].candidate, 0U);
}

TEST(ReservePicks, AnInvalidCandidateIsNeverPicked) {
  Scene scene;
  Page page(scene);
  const CandidateKey invalid{.campaign = ~std::uint64_t{0}};
  const auto picks = page.pick({invalid, key("c1")}, 2);
  EXPECT_EQ(picks[0].candidate, 1U);
  EXPECT_FALSE(picks[1].candidate.has_value());
}

}  // namespace reserve_decision_test
}  // namespace fcap::rules
