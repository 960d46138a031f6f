#include "rules/page_decision.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/rules/random_world.h"
#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace page_decision_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::int64_t kNowMs = 1'774'746'000'000;
constexpr Instant kNow = instant_from_ms(kNowMs);

CandidateKey key(std::string_view campaign, std::string_view creative = "") {
  return candidate_key({campaign, creative});
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

// What decide_picks() says for slots with the fingerprints 1000, 1001, …
class Page {
 public:
  explicit Page(Scene& scene) : scene_(scene) {}

  std::vector<SlotPick> pick(const std::vector<CandidateKey>& candidates, std::size_t slots) {
    std::vector<std::uint32_t> fingerprints(slots);
    for (std::size_t i = 0; i < slots; ++i) fingerprints[i] = static_cast<std::uint32_t>(1000 + i);
    return decide_picks(scene_.evaluator(), scene_.ledger(), scene_.question(kNowMs),
                        {.candidates = candidates,
                         .fingerprints = fingerprints,
                         .life = 15min,
                         .is_late = is_late});
  }

  std::function<bool()> is_late;

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
  EXPECT_EQ(picks[1].answer, ReserveAnswer::kGranted);
  EXPECT_EQ(picks[1].time, kNow);
  EXPECT_EQ(picks[1].expires, kNow + 15min);
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
  EXPECT_EQ(again[1].answer, ReserveAnswer::kHeld);
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

TEST(ReservePicks, WhatIsHeldOutsideTheCandidatesStaysTheSlotsPick) {
  Scene scene;
  scene.rule(rule(1));
  scene.ledger().merge(entry("c8", 1001));
  scene.ledger().merge(ledger::Reservation{.event = entry("c9", 1000), .expires = kNow + 1min});
  Page page(scene);
  const auto picks = page.pick({key("c1"), key("c9", "k1")}, 3);
  EXPECT_FALSE(picks[0].candidate.has_value());
  EXPECT_EQ(picks[0].answer, ReserveAnswer::kHeld);
  EXPECT_EQ(picks[0].expires, kNow + 1min);
  EXPECT_FALSE(picks[1].candidate.has_value());
  EXPECT_EQ(picks[1].answer, ReserveAnswer::kConfirmed);
  EXPECT_EQ(picks[1].time, kNow - 3min);
  EXPECT_EQ(picks[2].candidate, 0U);
}

TEST(ReservePicks, EventsOfOtherTypesHoldNoSlot) {
  Scene scene;
  ledger::Entry click = entry("c9", 1000);
  click.type = EventType::kClick;
  scene.ledger().merge(click);
  Page page(scene);
  EXPECT_EQ(page.pick({key("c1")}, 1)[0].candidate, 0U);
}

TEST(ReservePicks, WithoutTimeItStopsAtTheNextLookAtTheHistory) {
  Scene scene;
  scene.rule({.id = "g", .scope = Scope::kUser, .limit = 5, .window = sliding(24h)});
  Page page(scene);
  int looks = 0;
  page.is_late = [&] { return ++looks > 1; };
  const auto picks = page.pick({key("c1"), key("c2"), key("c3"), key("c4")}, 4);
  EXPECT_EQ(picks[0].answer, ReserveAnswer::kGranted);
  EXPECT_EQ(picks[1].answer, ReserveAnswer::kGranted);
  EXPECT_EQ(picks[2].answer, ReserveAnswer::kLate);
  EXPECT_FALSE(picks[2].candidate.has_value());
  EXPECT_EQ(picks[3].answer, ReserveAnswer::kLate);
}

// Each look walks through all of the record, and is what a page costs. The deadline is looked at
// before each but the first.
TEST(ReservePicks, ManyCandidatesTakeFewLooksAtTheHistory) {
  Scene scene;
  scene.rule(rule(1));
  std::vector<CandidateKey> candidates;
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    const std::string campaign = "c" + std::to_string(i);
    scene.ledger().merge(entry(campaign, i));
    candidates.push_back(key(campaign));
  }
  Page page(scene);
  int looks = 1;
  page.is_late = [&] { return ++looks < 0; };
  EXPECT_EQ(page.pick(candidates, 1)[0].answer, ReserveAnswer::kCapped);
  EXPECT_EQ(looks, 10) << "at 1, 2, 4, … 512 candidates";
  for (const char* const campaign : {"free-1", "free-2"}) candidates.push_back(key(campaign));
  looks = 1;
  const auto picks = page.pick(candidates, 3);
  EXPECT_EQ(picks[0].candidate, 1'000U);
  EXPECT_EQ(picks[1].candidate, 1'001U);
  EXPECT_EQ(picks[2].answer, ReserveAnswer::kCapped);
  EXPECT_EQ(looks, 11) << "what is capped is not judged again";
}

// What decide_picks() must say, one candidate at a time: each is evaluated alone, with all earlier
// picks in the ledger.
class OneByOne {
 public:
  OneByOne(const Evaluator::EvaluatorInput& question, ledger::Ledger ledger,
           const WantedPicks& wanted)
      : ledger_(std::move(ledger)),
        question_{.rules = question.rules,
                  .ledger = ledger_,
                  .now = question.now,
                  .segments = question.segments,
                  .completeness = question.completeness},
        wanted_(wanted),
        is_out_(wanted.candidates.size()),
        picks_(wanted.fingerprints.size()) {}

  std::vector<SlotPick> run() {
    std::vector<bool> is_held(picks_.size());
    for (std::size_t slot = 0; slot < picks_.size(); ++slot) is_held[slot] = keep(slot);
    for (std::size_t slot = 0; slot < picks_.size(); ++slot) {
      if (!is_held[slot]) fill(slot);
    }
    return picks_;
  }

 private:
  ReserveDecision decide(std::size_t slot, const CandidateKey& candidate) {
    return decide_reserve(evaluator_, question_,
                          {.candidate = candidate, .fingerprint = wanted_.fingerprints[slot]});
  }

  static bool is_there(const ReserveDecision& decision) {
    return decision.answer == ReserveAnswer::kConfirmed || decision.answer == ReserveAnswer::kHeld;
  }

  bool keep(std::size_t slot) {
    for (std::size_t i = 0; i < wanted_.candidates.size(); ++i) {
      if (is_out_[i]) continue;
      const ReserveDecision decision = decide(slot, wanted_.candidates[i]);
      if (!is_there(decision)) continue;
      is_out_[i] = true;
      picks_[slot] = {i, decision.answer, decision.time, decision.expires};
      return true;
    }
    // Every identity that the ledger knows under the slot's id.
    for (const ledger::Run& run : ledger_.runs()) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        if (run.type == EventType::kImpression &&
            ledger_.fingerprints()[i] == wanted_.fingerprints[slot]) {
          picks_[slot] = {std::nullopt, ReserveAnswer::kConfirmed, {}, {}};
          return true;
        }
      }
    }
    for (const ledger::Reservation& held : ledger_.reservations()) {
      if (held.event.type == EventType::kImpression && !held.released &&
          held.expires > question_.now && held.event.fingerprint == wanted_.fingerprints[slot]) {
        picks_[slot] = {std::nullopt, ReserveAnswer::kHeld, {}, {}};
        return true;
      }
    }
    return false;
  }

  void fill(std::size_t slot) {
    for (std::size_t i = 0; i < wanted_.candidates.size(); ++i) {
      if (is_out_[i]) continue;
      const ReserveDecision decision = decide(slot, wanted_.candidates[i]);
      if (decision.answer == ReserveAnswer::kReleased) continue;
      is_out_[i] = true;
      lacks_history_ |= decision.answer == ReserveAnswer::kIncomplete;
      if (decision.answer != ReserveAnswer::kGranted) continue;
      const Instant expires = decision.time + wanted_.life;
      ledger_.merge(ledger::Reservation{.event = {.time = decision.time,
                                                  .campaign = wanted_.candidates[i].campaign,
                                                  .creative = wanted_.candidates[i].creative,
                                                  .type = EventType::kImpression,
                                                  .fingerprint = wanted_.fingerprints[slot]},
                                        .expires = expires});
      picks_[slot] = {i, decision.answer, decision.time, expires};
      return;
    }
    picks_[slot].answer = lacks_history_ ? ReserveAnswer::kIncomplete : ReserveAnswer::kCapped;
  }

  ledger::Ledger ledger_;
  Evaluator evaluator_;
  Evaluator::EvaluatorInput question_;
  const WantedPicks& wanted_;
  std::vector<bool> is_out_;
  std::vector<SlotPick> picks_;
  bool lacks_history_ = false;
};

// Groups of candidates are judged at once; that must not show. Re-run one with FCAP_TEST_SEED.
TEST(ReservePicks, EqualThoseThatAreEvaluatedOneByOne) {
  const std::uint64_t seed = test_seed();
  const std::uint64_t pages = given_seed() ? 1 : 3000;
  int granted = 0;
  int refused = 0;
  int kept = 0;
  for (std::uint64_t page = 0; page < pages && !::testing::Test::HasFailure(); ++page) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + page));
    RandomWorld random(seed + page);
    reference::World world = random.make();
    random.reserve(world);
    auto rules = RuleSet::build(world.spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
    ASSERT_TRUE(rules.ok()) << rules.status().text();
    ledger::Ledger ledger = ledger_of(world, random.random());
    const std::vector<std::string_view> segments(world.segments.begin(), world.segments.end());
    std::vector<CandidateKey> candidates(static_cast<std::size_t>(random.between(1, 20)));
    for (CandidateKey& each : candidates) {
      const reference::Candidate candidate = random.candidate();
      each = candidate_key({candidate.campaign, candidate.creative});
    }
    std::vector<std::uint32_t> prints(static_cast<std::size_t>(random.between(1, 5)));
    for (std::size_t i = 0; i < prints.size(); ++i) {
      // Some of events and reservations that are there.
      prints[i] = random.one_in(3) ? static_cast<std::uint32_t>(random.between(0, 1)) * 100 +
                                         static_cast<std::uint32_t>(i)
                                   : static_cast<std::uint32_t>(5000 + i);
    }
    const Evaluator::EvaluatorInput question{
        .rules = *rules.value(),
        .ledger = ledger,
        .now = instant_from_ms(random.instant_of_reservations(world)),
        .segments = segments,
        .completeness =
            random.one_in(8) ? Completeness(instant_from_ms(random.instant())) : Completeness()};
    const WantedPicks wanted{.candidates = candidates, .fingerprints = prints, .life = 15min};
    const std::vector<SlotPick> expected = OneByOne(question, ledger, wanted).run();
    Evaluator evaluator;
    const std::vector<SlotPick> picks = decide_picks(evaluator, ledger, question, wanted);
    ASSERT_EQ(picks.size(), expected.size());
    for (std::size_t i = 0; i < picks.size(); ++i) {
      EXPECT_EQ(picks[i].candidate, expected[i].candidate) << i;
      if (!picks[i].candidate && is_allowed(expected[i].answer)) {
        EXPECT_TRUE(is_allowed(picks[i].answer)) << i;
        ++kept;
        continue;
      }
      EXPECT_EQ(picks[i].answer, expected[i].answer) << i;
      if (!picks[i].candidate) {
        ++refused;
        continue;
      }
      EXPECT_EQ(picks[i].time, expected[i].time) << i;
      EXPECT_EQ(picks[i].expires, expected[i].expires) << i;
      granted += picks[i].answer == ReserveAnswer::kGranted ? 1 : 0;
    }
  }
  if (given_seed()) return;
  EXPECT_GT(granted, 500);
  EXPECT_GT(refused, 500);
  EXPECT_GT(kept, 100);
}

}  // namespace page_decision_test
}  // namespace fcap::rules
