// Never fewer verdicts than candidates, whatever fails.
#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "failing_new.h"
#include "fixtures.h"
#include "tests/support/picked.h"

namespace fcap::checker_test {
namespace memory_test {

constexpr std::ptrdiff_t kAll = std::numeric_limits<std::ptrdiff_t>::max();
constexpr std::string_view kTwoSlots[] = {"s1", "s2"};

// 200 candidates of one user who is at the cap of the first.
class OutOfMemory : public ::testing::TestWithParam<std::ptrdiff_t> {
 protected:
  OutOfMemory() {
    for (int i = 0; i < 200; ++i) campaigns_.push_back("campaign-" + std::to_string(i));
    for (const std::string& campaign : campaigns_) candidates_.push_back({campaign});
    std::vector<Rule> rules;
    for (const std::string& campaign : campaigns_) {
      rules.push_back(sliding_rule("rule of " + campaign, campaign, 3));
    }
    rules_ = rule_set(std::move(rules));
  }

  // A Checker that has not been used yet, so that much has to be allocated.
  [[nodiscard]] ScriptedChecker world(bool fail_open) const {
    CheckerOptions options = patient_options();
    options.fail_open = fail_open;
    options.deadline = std::chrono::seconds{60};  // a busy machine is no lack of memory
    options.local.cached_caps_max = 100;
    ScriptedChecker made(options);
    made.store->answer_at_once = StoreCode::kOk;
    made.store->records["fcap:{u}"] = record_of("campaign-0", 3);
    made.checker->set_rules(rules_);
    return made;
  }

  void expect_whole(const CheckResult& result, bool fail_open) const {
    ASSERT_EQ(result.verdicts.size(), candidates_.size());
    if (result.reason == Reason::kPassed) {
      EXPECT_FALSE(result.verdicts[0].allowed);
      EXPECT_TRUE(result.verdicts[1].allowed);
    } else {
      EXPECT_EQ(result.reason, Reason::kOverloaded);
      for (const Verdict& verdict : result.verdicts) {
        // Another user of the batch may have made it certain.
        EXPECT_EQ(verdict.allowed, fail_open && verdict.reason != Reason::kCapped);
      }
    }
  }

  // Calls body() with one more allocation that succeeds each time, until none fails.
  template <typename Body>
  void with_each_allocation_failing(const Body& body) const {
    bool failed = true;
    for (std::ptrdiff_t left = 0; failed && !::testing::Test::HasFailure(); ++left) {
      SCOPED_TRACE("allocations that succeed: " + std::to_string(left));
      const bool fail_open = left % 2 == 0;
      ScriptedChecker checked = world(fail_open);
      failed = body(*checked.checker, left, fail_open);
      ASSERT_LT(left, 2'000);
      // It goes on as if nothing had been.
      EXPECT_EQ(checked.checker->check("u", candidates_).reason, Reason::kPassed);
    }
  }

  std::vector<std::string> campaigns_;
  std::vector<Candidate> candidates_;
  std::shared_ptr<const RuleSet> rules_;
};

TEST_P(OutOfMemory, CheckHasAllVerdicts) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    fail_allocations_of_this_thread(left, GetParam());
    const CheckResult result = checker.check("u", candidates_);
    const bool failed = end_of_failing_allocations();
    expect_whole(result, fail_open);
    return failed;
  });
}

TEST_P(OutOfMemory, CheckAsyncHasAllVerdicts) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    std::promise<CheckResult> answer;
    Checker::Callback callback = [&](CheckResult result) { answer.set_value(std::move(result)); };
    fail_allocations_of_this_thread(left, GetParam());
    checker.check_async("u", candidates_, {}, std::move(callback));
    const bool failed = end_of_failing_allocations();
    expect_whole(answer.get_future().get(), fail_open);
    return failed;
  });
}

TEST_P(OutOfMemory, BatchHasAllVerdictsOfAllUsersItHasRoomFor) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    const CheckRequest users[] = {{"u", candidates_}, {"u", candidates_}, {"u", candidates_}};
    fail_allocations_of_this_thread(left, GetParam());
    const std::vector<CheckResult> results = checker.check_batch(users);
    const bool failed = end_of_failing_allocations();
    if (left > 0) {
      EXPECT_EQ(results.size(), 3U);
    }
    for (const CheckResult& result : results) expect_whole(result, fail_open);
    return failed;
  });
}

TEST_P(OutOfMemory, FirstAllowedPicksWhereItFailsOpen) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    fail_allocations_of_this_thread(left, GetParam());
    const PickResult result = checker.first_allowed("u", candidates_, 2);
    const bool failed = end_of_failing_allocations();
    if (result.reason == Reason::kPassed) {
      EXPECT_THAT(result.picked, ::testing::ElementsAre(1, 2));
    } else if (left > 0) {  // there was room for the picks
      EXPECT_EQ(result.picked.size(), fail_open ? 2U : 0U);
    }
    return failed;
  });
}

// The memory for all slots is taken first. Without it nothing is picked.
TEST_P(OutOfMemory, ASharedPageIsPickedWhereItFailsOpen) {
  constexpr std::ptrdiff_t kForSlots = 2;
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    fail_allocations_of_this_thread(left, GetParam());
    const PagePicks page = checker.pick({Promise::kShared, "u", candidates_, kTwoSlots});
    const bool failed = end_of_failing_allocations();
    if (page.reason == Reason::kDone) {
      EXPECT_THAT(picked(page), ::testing::ElementsAre(1, 2));
    } else {
      EXPECT_EQ(page.reason, Reason::kOverloaded);
      // The next one is for the picks of the check.
      if (left != kForSlots) {
        EXPECT_EQ(picked(page).size(), fail_open && left > kForSlots ? 2U : 0U);
      }
    }
    EXPECT_EQ(checker.stats().allowed, picked(page).size());
    EXPECT_EQ(checker.stats().pending, 0U);
    return failed;
  });
}

TEST_P(OutOfMemory, ASharedPageIsPickedByACallbackWhereItFailsOpen) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool fail_open) {
    std::promise<PagePicks> answer;
    Checker::PageCallback callback = [&](PagePicks page) { answer.set_value(std::move(page)); };
    fail_allocations_of_this_thread(left, GetParam());
    checker.pick_async({Promise::kShared, "u", candidates_, kTwoSlots}, {}, std::move(callback));
    const bool failed = end_of_failing_allocations();
    const PagePicks page = answer.get_future().get();
    if (page.reason == Reason::kDone) {
      EXPECT_THAT(picked(page), ::testing::ElementsAre(1, 2));
    } else {
      EXPECT_EQ(page.reason, Reason::kOverloaded);
      EXPECT_THAT(picked(page).size(), ::testing::AnyOf(0U, fail_open ? 2U : 0U));
    }
    EXPECT_EQ(checker.stats().allowed, picked(page).size());
    EXPECT_EQ(checker.stats().pending, 0U);
    return failed;
  });
}

// The store's users have no right to write, so that no hard call is decided.
TEST_P(OutOfMemory, ReserveAsyncAllowsWhatIsUndecidedWhereItIsTold) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool /*fail_open*/) {
    std::promise<HardResult> answer;
    Checker::HardCallback callback = [&](HardResult result) {
      answer.set_value(std::move(result));
    };
    fail_allocations_of_this_thread(left, GetParam());
    checker.hard_async({HardCall::kReserve, {"u", candidates_[1], "a"}}, {.allow_undecided = true},
                       std::move(callback));
    const bool failed = end_of_failing_allocations();
    const HardResult result = answer.get_future().get();
    EXPECT_EQ(result.reason, failed ? Reason::kOverloaded : Reason::kNoConfig);
    EXPECT_TRUE(result.allowed);
    return failed;
  });
}

TEST_P(OutOfMemory, AReservedPageHasAPickPerSlot) {
  with_each_allocation_failing([&](Checker& checker, std::ptrdiff_t left, bool /*fail_open*/) {
    std::promise<PagePicks> answer;
    Checker::PageCallback callback = [&](PagePicks picks) { answer.set_value(std::move(picks)); };
    fail_allocations_of_this_thread(left, GetParam());
    checker.pick_async({Promise::kReserved, "u", candidates_, kTwoSlots}, {}, std::move(callback));
    const bool failed = end_of_failing_allocations();
    const PagePicks result = answer.get_future().get();
    EXPECT_EQ(result.reason, failed ? Reason::kOverloaded : Reason::kNoConfig);
    if (!result.unknown) {
      EXPECT_EQ(result.picks.size(), std::size(kTwoSlots));
    }
    return failed;
  });
}

INSTANTIATE_TEST_SUITE_P(OneOrAll, OutOfMemory, ::testing::Values(std::ptrdiff_t{1}, kAll),
                         [](const auto& instance) { return instance.param == 1 ? "One" : "All"; });

TEST(ThrowingClock, IsAnAnswerForEveryCandidate) {
  const auto store = std::make_shared<ScriptedStore>();
  CheckerOptions options = patient_options();
  options.store = store;
  options.clock = []() -> Instant { throw std::runtime_error("of the test"); };
  Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok());
  Checker& checker = *made.value();
  checker.set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  const CheckResult result = checker.check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kOverloaded);
  EXPECT_EQ(result.verdicts.size(), 2U);
  const CheckRequest users[] = {{"u", candidates}};
  const auto results = checker.check_batch(users);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].verdicts.size(), 2U);
  EXPECT_EQ(checker.first_allowed("u", candidates, 1).picked.size(), 1U);
  std::promise<std::size_t> answer;
  checker.check_async("u", candidates, {},
                      [&](const CheckResult& given) { answer.set_value(given.verdicts.size()); });
  EXPECT_EQ(answer.get_future().get(), 2U);
}

}  // namespace memory_test
}  // namespace fcap::checker_test
