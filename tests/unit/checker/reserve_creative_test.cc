// One event id, and several creatives of its campaign: a hard cap on a creative holds.
#include <gtest/gtest.h>

#include "reserve_fixture.h"
#include "tests/support/asking.h"

namespace fcap::checker_test {
namespace reserve_creative_test {

constexpr Candidate kRed{"c1", "red"};
constexpr Candidate kBlue{"c1", "blue"};

/// At most one impression a day of the creative "red", and any number of all others.
class ReserveCreative : public Reserve {
 protected:
  ReserveCreative() {
    Rule red = sliding_rule("red-daily", "red", 1);
    red.scope = Scope::kCreative;
    checker_->set_rules(rule_set({red}));
  }
  HardResult take(const Candidate& candidate, std::string_view id,
                  const HardOptions& options = {}) {
    return checker_->hard({HardCall::kReserve, {"u", candidate, id}}, options);
  }
  HardResult keep(const Candidate& candidate, std::string_view id,
                  const HardOptions& options = {}) {
    return checker_->hard({HardCall::kRecord, {"u", candidate, id}}, options);
  }
};

TEST_F(ReserveCreative, AnIdThatHoldsOneIsNotHeldForAnother) {
  ASSERT_TRUE(take(kRed, "first").allowed);
  ASSERT_TRUE(take(kBlue, "a").allowed);
  const std::string before = store_->record("u");
  for (const HardResult& result : {take(kRed, "a"), keep(kRed, "a"), take({"c1"}, "a"),
                                   take(kRed, "a", {.allow_undecided = true})}) {
    EXPECT_FALSE(result.allowed);
    EXPECT_EQ(result.reason, Reason::kInvalid);
  }
  EXPECT_EQ(store_->record("u"), before);
  EXPECT_EQ(take(kBlue, "a").reason, Reason::kRepeated);
}

TEST_F(ReserveCreative, NorIsOneThatIsConfirmed) {
  ASSERT_TRUE(keep(kRed, "first").allowed);
  ASSERT_TRUE(keep(kBlue, "a").allowed);
  for (const HardOptions& options : {HardOptions{}, HardOptions{.shown = true}}) {
    EXPECT_EQ(keep(kRed, "a", options).reason, Reason::kInvalid) << options.shown;
  }
  EXPECT_EQ(take(kRed, "a").reason, Reason::kInvalid);
  EXPECT_EQ(keep(kBlue, "a").reason, Reason::kRepeated);
}

TEST_F(ReserveCreative, AfterItsExpiryAnotherIsDecidedAgain) {
  ASSERT_TRUE(take(kRed, "first").allowed);
  ASSERT_TRUE(take(kBlue, "a", {.life = 1min}).allowed);
  now_ += 1min;
  EXPECT_EQ(take(kRed, "a").reason, Reason::kCapped);
  ASSERT_TRUE(release("first").allowed);
}

TEST_F(ReserveCreative, AReleaseNeedsNoCreative) {
  ASSERT_TRUE(take(kRed, "a").allowed);
  EXPECT_TRUE(release("a").allowed);
  EXPECT_EQ(take(kRed, "a").reason, Reason::kReleased);
  EXPECT_EQ(take(kBlue, "a").reason, Reason::kReleased);
  EXPECT_TRUE(take(kRed, "b").allowed);
}

TEST_F(ReserveCreative, AfterALostAnswerARepetitionWithAnotherIsRefused) {
  store_->lose_answer = ReservingStore::LostAnswer{};
  EXPECT_TRUE(take(kBlue, "a").unknown);
  EXPECT_EQ(take(kRed, "a").reason, Reason::kInvalid);
  EXPECT_EQ(take(kBlue, "a").reason, Reason::kRepeated);
}

TEST_F(ReserveCreative, ABatchKnowsItToo) {
  ASSERT_TRUE(take(kBlue, "a").allowed);
  const Impression requests[] = {{"u", kRed, "a"}, {"u", kBlue, "a"}};
  const auto results = checker_->hard_batch(asking(HardCall::kReserve, requests));
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].reason, Reason::kInvalid);
  EXPECT_EQ(results[1].reason, Reason::kRepeated);
}

// What was shown is recorded as it was shown.
TEST_F(ReserveCreative, WhatWasShownInsteadOfTheReservedOneIsRecorded) {
  const HardResult reserved = take(kBlue, "a");
  now_ += 1min;
  const HardResult shown = keep(kRed, "a", {.shown = true});
  EXPECT_EQ(shown.reason, Reason::kDone);
  EXPECT_EQ(shown.time, reserved.time);
  EXPECT_EQ(take(kRed, "b").reason, Reason::kCapped);
}

}  // namespace reserve_creative_test
}  // namespace fcap::checker_test
