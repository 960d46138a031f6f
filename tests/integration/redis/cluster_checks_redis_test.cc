// Checks on a real cluster while its slots move and its shards fail: nobody is judged by another
// user's record.
#include <atomic>
#include <latch>

#include <gtest/gtest.h>

#include "support/checker_world.h"
#include "support/cluster_test.h"

namespace fcap {
namespace cluster_checks_redis_test {

using namespace std::chrono_literals;
using testing::Load;
using testing::RedisCluster;
using testing::StoreCalls;
using testing::wait_until;

// Every third user has seen c1 once, which is all that the rule allows.
class CheckedCluster : public testing::ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    users_ = users(300);
    for (std::size_t i = 0; i < users_.size(); i += 3) record(users_[i]);
    CheckerOptions checking;
    checking.redis = options();
    checking.deadline = 30s;
    checking.clock = [] { return testing::kCheckedAt; };
    auto made = Checker::create(std::move(checking));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(testing::daily_rule(1));
    for (std::size_t i = 0; i < 30; ++i) {
      EXPECT_TRUE(wait_until([&] { return check(i).reason == Reason::kPassed; }));
    }
  }

  void record(const std::string& user) {
    const ledger::Entry entry{.time = testing::kCheckedAt - 1min,
                              .campaign = ledger::id_hash("c1"),
                              .creative = 0,
                              .type = EventType::kImpression,
                              .fingerprint = 1};
    std::string bytes;
    ledger::append_entries({&entry, 1}, bytes);
    const auto expiry =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
    EXPECT_EQ(StoreCalls(*store_).append("fcap:{" + user + "}", bytes, expiry).code,
              StoreCode::kOk);
  }

  CheckResult check(std::size_t i) { return checker_->check(users_[i], candidates_); }

  void take(std::size_t i, const CheckResult& result) {
    ++checks_;
    if (result.reason != Reason::kPassed) {
      ++unanswered_;
    } else if (result.verdicts.front().allowed != (i % 3 != 0)) {
      ++wrong_;
    }
  }

  // Several checks, in all the ways there are.
  void check_some() {
    thread_local std::size_t next = 0;
    const auto following = [this] { return next = (next + 7) % users_.size(); };
    for (int i = 0; i < 10; ++i) {
      const std::size_t user = following();
      take(user, check(user));
    }
    std::vector<CheckRequest> batch;
    std::vector<std::size_t> places;
    for (int i = 0; i < 50; ++i) {
      places.push_back(following());
      batch.push_back({.subject = users_[places.back()], .candidates = candidates_});
    }
    const auto results = checker_->check_batch(batch);
    for (std::size_t i = 0; i < results.size(); ++i) take(places[i], results[i]);
    std::latch answered(50);
    for (int i = 0; i < 50; ++i) {
      const std::size_t user = following();
      checker_->check_async(users_[user], candidates_, {}, [&, user](const CheckResult& result) {
        take(user, result);
        answered.count_down();
      });
    }
    answered.wait();
  }

  bool wait_for_more_checks() {
    const std::size_t before = checks_ - unanswered_;
    return wait_until([&] { return checks_ - unanswered_ >= before + 2'000; });
  }

  std::vector<std::string> users_;
  const std::vector<Candidate> candidates_ = {{"c1"}};
  std::unique_ptr<Checker> checker_;
  std::atomic<std::size_t> checks_ = 0;
  std::atomic<std::size_t> unanswered_ = 0;
  std::atomic<std::size_t> wrong_ = 0;
};

TEST_F(CheckedCluster, ChecksAreRightWhileSlotsMoveInBothDirections) {
  constexpr testing::Slots kMovedOfFirst{0, 511};
  constexpr testing::Slots kMovedOfSecond{5461, 5972};
  Load load(3, [this] { check_some(); });
  EXPECT_TRUE(wait_for_more_checks());
  cluster_->move_slots(0, 1, kMovedOfFirst);
  cluster_->move_slots(1, 2, kMovedOfSecond);
  EXPECT_TRUE(wait_for_more_checks());
  cluster_->move_slots(1, 0, kMovedOfFirst);
  cluster_->move_slots(2, 1, kMovedOfSecond);
  EXPECT_TRUE(wait_for_more_checks());
  load.stop();
  EXPECT_EQ(wrong_, 0U);
  EXPECT_EQ(unanswered_, 0U) << "of " << checks_ << checker_->health().store.last_error;
}

TEST_F(CheckedCluster, ChecksAreRightAgainAfterAFailoverAndNeverWrong) {
  Load load(3, [this] { check_some(); });
  EXPECT_TRUE(wait_for_more_checks());
  cluster_->fail_over(0, RedisCluster::FailOver::kInOrder);
  cluster_->fail_over(1, RedisCluster::FailOver::kKilled);
  EXPECT_TRUE(wait_for_more_checks());
  load.stop();
  EXPECT_EQ(wrong_, 0U);
  for (std::size_t i = 0; i < users_.size(); ++i) {
    const auto is_right = [&] {
      const CheckResult result = check(i);
      return result.reason == Reason::kPassed && result.verdicts.front().allowed == (i % 3 != 0);
    };
    EXPECT_TRUE(wait_until(is_right)) << users_[i];
  }
}

}  // namespace cluster_checks_redis_test
}  // namespace fcap
