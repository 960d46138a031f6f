// Several slots of one page, in one exchange.
#include <algorithm>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "reserving_store.h"

namespace fcap::checker_test {
namespace reserved_page_test {

class ReservedPage : public ::testing::Test {
 protected:
  ReservedPage() {
    CheckerOptions options = patient_options();
    options.store = store_;
    options.clock = [this] { return now_; };
    options.deadline = 30s;
    auto made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    rules({sliding_rule("c1-daily", "c1", 1), sliding_rule("c2-daily", "c2", 1),
           sliding_rule("c3-daily", "c3", 1)});
  }
  void rules(std::vector<Rule> rules) { checker_->set_rules(rule_set(std::move(rules))); }

  PagePicks pick(const std::vector<std::string_view>& ids,
                 const std::vector<Candidate>& ranked = {{"c1"}, {"c2"}, {"c3"}},
                 const PageOptions& options = {}, const CheckToken& after = {}) {
    return checker_->pick({Promise::kReserved, "u", ranked, ids, after}, options);
  }
  // The picks' indices; -1: none.
  static std::vector<int> indices(const PagePicks& picks) {
    std::vector<int> found;
    for (const auto& pick : picks.picks) {
      found.push_back(pick.candidate ? static_cast<int>(*pick.candidate) : -1);
    }
    return found;
  }
  using Indices = std::vector<int>;

  Instant now_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::shared_ptr<ReservingStore> store_ = std::make_shared<ReservingStore>();
  std::unique_ptr<Checker> checker_;
};

TEST_F(ReservedPage, FillsTheSlotsInRankOrderWithOneExchange) {
  const PagePicks picks = pick({"s1", "s2"});
  EXPECT_EQ(indices(picks), (Indices{0, 1}));
  EXPECT_EQ(picks.reason, Reason::kDone);
  EXPECT_EQ(picks.picks[0].time, now_);
  EXPECT_EQ(picks.picks[0].expires, now_ + 15min);
  EXPECT_EQ(store_->exchanges, 1);
  EXPECT_EQ(indices(pick({"s3", "s4"})), (Indices{2, -1}));
}

TEST_F(ReservedPage, CountsItsOwnPicks) {
  Rule user = sliding_rule("user-daily", "", 2);
  user.scope = Scope::kUser;
  rules({user});
  EXPECT_EQ(indices(pick({"s1", "s2", "s3"})), (Indices{0, 1, -1}));
}

TEST_F(ReservedPage, ARepetitionGivesTheFirstAnswer) {
  pick({"s1", "s2"});
  now_ += 1min;
  // Even if the ranking is another one by now.
  const PagePicks again = pick({"s1", "s2"}, {{"c3"}, {"c2"}, {"c1"}});
  EXPECT_EQ(indices(again), (Indices{2, 1}));
  EXPECT_EQ(again.reason, Reason::kRepeated);
  EXPECT_EQ(again.picks[0].time, now_ - 1min);
  EXPECT_EQ(again.picks[0].expires, now_ + 14min);
}

TEST_F(ReservedPage, AskedAgainWithOtherCandidatesItKeepsItsPicks) {
  const std::vector<Candidate> others = {{"c3"}, {"c4"}};
  pick({"s1", "s2"});
  const std::string before = store_->record("u");
  now_ += 1min;
  const PagePicks again = pick({"s1", "s2"}, others);
  EXPECT_EQ(indices(again), (Indices{-1, -1}));
  EXPECT_EQ(again.reason, Reason::kRepeated);
  EXPECT_TRUE(again.picks[0].held_by_other);
  EXPECT_EQ(again.picks[0].time, now_ - 1min);
  EXPECT_EQ(again.picks[0].expires, now_ + 14min);
  EXPECT_EQ(store_->record("u"), before);
  const PagePicks further = pick({"s1", "s3"}, others);
  EXPECT_EQ(indices(further), (Indices{-1, 0}));
  EXPECT_EQ(further.reason, Reason::kDone);
  EXPECT_FALSE(further.picks[1].held_by_other);
  EXPECT_EQ(indices(pick({"s2"}, {{"c4"}})), (Indices{-1})) << "one slot and one candidate, too";
}

TEST_F(ReservedPage, AnImpressionUnderASlotsIdStaysItsPickToo) {
  ASSERT_TRUE(checker_->hard({HardCall::kRecord, {"u", {"c9"}, "s1"}}).allowed);
  const PagePicks picks = pick({"s1"});
  EXPECT_EQ(indices(picks), (Indices{-1}));
  EXPECT_TRUE(picks.picks[0].held_by_other);
  EXPECT_EQ(picks.picks[0].time, now_);
  EXPECT_EQ(picks.picks[0].expires, std::nullopt);
}

TEST_F(ReservedPage, AnotherCreativeOfTheCampaignIsNotTheSlotsPick) {
  pick({"s1"}, {{"c1", "red"}});
  const PagePicks picks = pick({"s1"}, {{"c1", "blue"}, {"c1"}});
  EXPECT_EQ(indices(picks), (Indices{-1}));
  EXPECT_TRUE(picks.picks[0].held_by_other);
  EXPECT_EQ(indices(pick({"s1"}, {{"c1", "blue"}, {"c1", "red"}})), (Indices{1}));
}

TEST_F(ReservedPage, WhatHasExpiredKeepsNoSlot) {
  pick({"s1"}, {{"c9"}});
  now_ += 15min;
  EXPECT_EQ(indices(pick({"s1"})), (Indices{0}));
}

TEST_F(ReservedPage, OnlySlotsWithoutAPickAreEvaluated) {
  pick({"s1"});
  EXPECT_EQ(indices(pick({"s0", "s1", "s2"})), (Indices{1, 0, 2}));
}

TEST_F(ReservedPage, AnEventUnderASlotsIdIsItsPick) {
  ASSERT_TRUE(checker_->hard({HardCall::kRecord, {"u", {"c2"}, "s1"}}).allowed);
  const PagePicks picks = pick({"s1", "s2"});
  EXPECT_EQ(indices(picks), (Indices{1, 0}));
  EXPECT_EQ(picks.picks[0].expires, std::nullopt);
}

TEST_F(ReservedPage, TheSameCampaignTwiceIsTwoCandidates) {
  rules({sliding_rule("c1-daily", "c1", 2)});
  const std::vector<Candidate> ranked = {{"c1", "a"}, {"c1", "b"}, {"c1", "c"}};
  EXPECT_EQ(indices(pick({"s1", "s2", "s3"}, ranked)), (Indices{0, 1, -1}));
  EXPECT_EQ(indices(pick({"s2", "s1"}, ranked)), (Indices{1, 0})) << "by creative";
}

TEST_F(ReservedPage, AReleasedIdIsNotPickedAgainForItsCandidate) {
  pick({"s1"});
  checker_->hard({HardCall::kRelease, {"u", {"c1"}, "s1"}});
  EXPECT_EQ(indices(pick({"s1"})), (Indices{1}));
  EXPECT_EQ(indices(pick({"s1", "s9"}, {{"c1"}, {"c2"}})), (Indices{1, 0}));
}

TEST_F(ReservedPage, AllOrNothingIsWritten) {
  store_->lose_answer = ReservingStore::LostAnswer{.is_executed = false};
  const PagePicks first = pick({"s1", "s2"});
  EXPECT_TRUE(first.unknown);
  EXPECT_EQ(indices(first), (Indices{-1, -1}));
  EXPECT_EQ(store_->record("u"), "");
  store_->lose_answer = ReservingStore::LostAnswer{};
  EXPECT_TRUE(pick({"s1", "s2"}).unknown);
  const PagePicks third = pick({"s1", "s2"});
  EXPECT_EQ(indices(third), (Indices{0, 1}));
  EXPECT_EQ(third.reason, Reason::kRepeated);
}

TEST_F(ReservedPage, WhenTheRecordChangedItChoosesAgain) {
  store_->before_exchange = [this] { checker_->hard({HardCall::kRecord, {"u", {"c1"}, "other"}}); };
  EXPECT_EQ(indices(pick({"s1", "s2"})), (Indices{1, 2}));
}

TEST_F(ReservedPage, WhatIsThereIsNamedThoughTheRestCannotBeFilled) {
  pick({"s1"});
  store_->missing = now_;
  const PagePicks picks = pick({"s1", "s2"});
  EXPECT_EQ(indices(picks), (Indices{0, -1}));
  EXPECT_EQ(picks.reason, Reason::kIncomplete);
}

TEST_F(ReservedPage, AfterACheckItTakesOneExchange) {
  const std::vector<Candidate> ranked = {{"c1"}, {"c2"}};
  const CheckResult check = checker_->check("u", ranked, {.keep_record = true});
  EXPECT_EQ(indices(pick({"s1", "s2"}, ranked, {}, check.token)), (Indices{0, 1}));
  EXPECT_EQ(store_->reads, 0);
}

TEST_F(ReservedPage, ACandidateThatCannotBeOneIsPassedOver) {
  EXPECT_EQ(indices(pick({"s1", "s2"}, {{""}, {"c1"}, {"c2"}})), (Indices{1, 2}));
}

TEST_F(ReservedPage, TheDeadlineIsLookedAtBetweenPicks) {
  const PageOptions no_time{.deadline = 0us};
  EXPECT_EQ(indices(pick({"s1"}, {{"c1"}}, no_time)), (Indices{0})) << "one look at the history";
  const std::string before = store_->record("u");
  const std::vector<std::string_view> ids = {"s1", "s2", "s3"};
  const std::vector<Candidate> ranked = {{"c1"}, {"c2"}, {"c3"}};
  std::vector<PagePicks> answers = {pick(ids, ranked, no_time)};
  std::promise<PagePicks> answer;
  checker_->pick_async({Promise::kReserved, "u", ranked, ids}, no_time,
                       [&answer](PagePicks picks) { answer.set_value(std::move(picks)); });
  answers.push_back(answer.get_future().get());
  for (const PagePicks& picks : answers) {
    EXPECT_EQ(indices(picks), (Indices{0, -1, -1})) << "all that is new, or nothing";
    EXPECT_EQ(picks.reason, Reason::kTimeout);
    EXPECT_FALSE(picks.unknown);
  }
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(ReservedPage, NoSlotsOrNoCandidatesNeedNoStore) {
  const PagePicks no_slots = pick({});
  EXPECT_TRUE(no_slots.picks.empty());
  EXPECT_EQ(no_slots.reason, Reason::kRepeated) << "nothing was left to be written";
  const PagePicks no_candidates = pick({"s1"}, {});
  EXPECT_EQ(indices(no_candidates), (Indices{-1}));
  EXPECT_EQ(no_candidates.reason, Reason::kCapped) << "no candidate passes";
  EXPECT_EQ(store_->reads + store_->exchanges, 0);
}

TEST_F(ReservedPage, EqualIdsAndTooManyAreInvalid) {
  EXPECT_EQ(pick({"s1", "s1"}).reason, Reason::kInvalid);
  std::vector<std::string> names;
  for (int i = 0; i < 65; ++i) names.push_back("s" + std::to_string(i));
  const std::vector<std::string_view> ids(names.begin(), names.end());
  EXPECT_EQ(pick(ids).reason, Reason::kInvalid);
}

TEST_F(ReservedPage, StopsAt64LiveReservations) {
  rules({sliding_rule("c-1", "other", 1)});
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
  std::vector<Candidate> ranked;
  for (const std::string& name : names) ranked.push_back({name});
  const std::vector<std::string_view> first(names.begin(), names.begin() + 60);
  const std::vector<std::string_view> then(names.begin() + 60, names.begin() + 70);
  pick(first, ranked);
  const std::vector<int> picked = indices(pick(then, ranked));
  EXPECT_EQ(std::count(picked.begin(), picked.end(), -1), 6);
}

}  // namespace reserved_page_test
}  // namespace fcap::checker_test
