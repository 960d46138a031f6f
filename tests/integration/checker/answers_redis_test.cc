// A Checker over a real Redis: what it asks and what it answers.
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/checker_test.h"

namespace fcap {
namespace answers_redis_test {

using testing::CheckerWorld;
using testing::daily_rule;
using testing::wait_until;

class CheckerAnswers : public testing::CheckerBothWaysTest {
 protected:
  // Whether it takes one read. The Checker reads the updater's configuration every few seconds, so
  // this looks more than once.
  template <typename Ask>
  bool takes_one_read(Ask ask) {
    for (int i = 0; i < 5; ++i) {
      world_->redis.command({"CONFIG", "RESETSTAT"});
      ask();
      if (reads() == 1) return true;
    }
    return false;
  }

  // How many reads Redis has served since the last CONFIG RESETSTAT.
  long long reads() {
    long long calls = 0;
    const std::string stats = world_->redis.command({"INFO", "commandstats"});
    for (const std::string name : {"cmdstat_get:calls=", "cmdstat_mget:calls="}) {
      const auto at = stats.find(name);
      if (at != std::string::npos) calls += std::stoll(stats.substr(at + name.size()));
    }
    return calls;
  }
};

TEST_P(CheckerAnswers, CapsByWhatRedisHolds) {
  world_->record("seen", 2);
  const auto checker = CheckerWorld::connected(world_->options());
  checker->set_rules(daily_rule(2));
  const Candidate candidates[] = {{"c1"}, {"c2"}, {"c1", "cr1"}};
  const CheckResult result = checker->check("seen", candidates);
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].rule_id, "c1-daily");
  EXPECT_EQ(result.verdicts[0].count, 2U);
  EXPECT_EQ(result.verdicts[0].eligible_at,
            testing::kCheckedAt - std::chrono::minutes(2) + std::chrono::hours(24));
  EXPECT_TRUE(result.verdicts[1].allowed);
  EXPECT_FALSE(result.verdicts[2].allowed);
  EXPECT_TRUE(checker->check("new", candidates).verdicts[0].allowed);
  checker->set_rules(daily_rule(3));
  EXPECT_TRUE(checker->check("seen", candidates).verdicts[0].allowed);
}

TEST_P(CheckerAnswers, OneReadServesAnyNumberOfCandidates) {
  const auto checker = CheckerWorld::connected(world_->options());
  std::vector<std::string> ids(200);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = "c" + std::to_string(i);
  std::vector<Candidate> candidates;
  candidates.reserve(ids.size());
  for (const std::string& id : ids) candidates.push_back({id, {}});
  EXPECT_TRUE(
      takes_one_read([&] { EXPECT_EQ(checker->check("u", candidates).verdicts.size(), 200U); }));
  EXPECT_TRUE(takes_one_read(
      [&] { EXPECT_EQ(checker->first_allowed("u", candidates, 150).picked.size(), 150U); }));
}

TEST_P(CheckerAnswers, ManyThreadsShareFewConnectionsAndNeverMixAnswers) {
  constexpr std::uint32_t kUsers = 20;
  for (std::uint32_t user = 1; user <= kUsers; ++user) world_->record(std::to_string(user), user);
  const auto checker = CheckerWorld::connected(world_->options());
  std::atomic<int> wrong{0};
  std::atomic<long long> connections{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      const Candidate candidates[] = {{"c1"}};
      for (std::uint32_t i = 0; i < 200; ++i) {
        const std::uint32_t user = 1 + (thread * 7 + i) % kUsers;
        const CheckResult result = checker->check(std::to_string(user), candidates);
        if (result.verdicts[0].count != user) ++wrong;
      }
    });
  }
  // What redis-cli itself uses is one of them.
  const std::string clients = world_->redis.command({"CLIENT", "LIST", "TYPE", "normal"});
  connections = std::count(clients.begin(), clients.end(), '\n') + 1;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(connections, 2 + GetParam());
}

TEST_P(CheckerAnswers, BatchReadsEveryUser) {
  world_->record("a", 1);
  world_->record("c", 1);
  const auto checker = CheckerWorld::connected(world_->options());
  const Candidate candidates[] = {{"c1"}};
  const CheckRequest users[] = {{"a", candidates}, {"b", candidates}, {"c", candidates}};
  const auto results = checker->check_batch(users);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_FALSE(results[0].verdicts[0].allowed);
  EXPECT_TRUE(results[1].verdicts[0].allowed);
  EXPECT_FALSE(results[2].verdicts[0].allowed);
}

TEST_P(CheckerAnswers, CompletionFormKeepsHundredsInFlight) {
  for (std::uint32_t user = 1; user <= 5; ++user) world_->record(std::to_string(user), user);
  const auto checker = CheckerWorld::connected(world_->options());
  constexpr std::uint32_t kChecks = 2000;
  std::atomic<std::uint32_t> answered{0};
  std::atomic<std::uint32_t> wrong{0};
  const Candidate candidates[] = {{"c1"}};
  for (std::uint32_t i = 0; i < kChecks; ++i) {
    const std::uint32_t user = 1 + i % 5;
    checker->check_async(std::to_string(user), candidates, {}, [&, user](CheckResult result) {
      if (result.verdicts[0].count != user) ++wrong;
      ++answered;
    });
  }
  EXPECT_TRUE(wait_until([&] { return answered == kChecks; }));
  EXPECT_EQ(wrong, 0U);
}

TEST_P(CheckerAnswers, CallbackStartsTheNextCheck) {
  world_->record("u", 1);
  const auto checker = CheckerWorld::connected(world_->options());
  std::promise<Reason> last;
  std::atomic<int> left{500};
  std::function<void(CheckResult)> next = [&](CheckResult result) {
    if (--left == 0) return last.set_value(result.verdicts[0].reason);
    const Candidate candidates[] = {{"c1"}};
    checker->check_async("u", candidates, {}, next);
  };
  next({});
  EXPECT_EQ(last.get_future().get(), Reason::kCapped);
}

TEST_P(CheckerAnswers, KeyPrefixSeparatesTenants) {
  world_->record("u", 1, "tenant-b");
  CheckerOptions options = world_->options();
  options.key_prefix = "tenant-b";
  const auto b = CheckerWorld::connected(options);
  options.key_prefix = "tenant-a";
  const auto a = CheckerWorld::connected(options);
  const Candidate candidates[] = {{"c1"}};
  EXPECT_FALSE(b->check("u", candidates).verdicts[0].allowed);
  EXPECT_TRUE(a->check("u", candidates).verdicts[0].allowed);
}

TEST_P(CheckerAnswers, AclUserPasswordAndDatabaseAreUsed) {
  world_->redis.command({"ACL", "SETUSER", "reader", "on", ">secret", "~fcap:*", "+get", "+mget",
                         "+select", "+ping", "+client"});
  world_->record("u", 1);
  world_->redis.command({"MOVE", "fcap:{u}", "3"});
  CheckerOptions options = world_->options();
  options.redis.user = "reader";
  options.redis.password = "secret";
  options.redis.database = 3;
  const auto checker = CheckerWorld::connected(options);
  const Candidate candidates[] = {{"c1"}};
  EXPECT_FALSE(checker->check("u", candidates).verdicts[0].allowed);
}

FCAP_BOTH_WAYS(CheckerAnswers);

}  // namespace answers_redis_test
}  // namespace fcap
