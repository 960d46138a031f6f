// A Checker whose Redis is slow, gone, closed to it, or holds what cannot be read.
#include <atomic>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/checker_test.h"
#include "support/tcp_proxy.h"

namespace fcap {
namespace faults_redis_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using ::testing::HasSubstr;
using testing::wait_until;

class CheckerFaults : public testing::CheckerBothWaysTest {
 protected:
  // Whether checks come to be answered for that reason.
  static bool comes_to(Checker& checker, Reason reason) {
    return wait_until([&] { return CheckerWorld::reason(checker, "u", 2ms) == reason; });
  }
};

TEST_P(CheckerFaults, FrozenRedisFailsOpenThenTheBreakerOpensThenItRecovers) {
  world_->record("u", 1);
  const auto checker = CheckerWorld::connected(world_->options());
  world_->redis.freeze();
  EXPECT_EQ(CheckerWorld::reason(*checker, "u", 2ms), Reason::kTimeout);
  EXPECT_TRUE(comes_to(*checker, Reason::kBreakerOpen));
  const Candidate candidates[] = {{"c1"}};
  EXPECT_TRUE(checker->check("u", candidates).verdicts[0].allowed);
  EXPECT_GT(checker->stats().unjudged[Reason::kTimeout], 0U);
  EXPECT_GT(checker->stats().unjudged[Reason::kBreakerOpen], 0U);
  world_->redis.thaw();
  EXPECT_TRUE(wait_until([&] { return CheckerWorld::reason(*checker, "u") == Reason::kPassed; }));
  EXPECT_FALSE(checker->check("u", candidates).verdicts[0].allowed);
}

TEST_P(CheckerFaults, KilledRedisFailsOpenAndARestartIsFound) {
  const auto checker = CheckerWorld::connected(world_->options());
  world_->redis.kill();
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result =
      checker->check("u", candidates, {.deadline = 50ms, .now = {}, .segments = {}});
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_NE(result.reason, Reason::kPassed);
  EXPECT_TRUE(wait_until([&] {
    const Reason reason = CheckerWorld::reason(*checker, "u", 2ms);
    return reason == Reason::kUnavailable || reason == Reason::kBreakerOpen;
  }));
  world_->redis.start();
  EXPECT_TRUE(wait_until([&] { return CheckerWorld::reason(*checker, "u") == Reason::kPassed; }));
}

TEST_P(CheckerFaults, RedisThatIsNotThereYetIsFoundWhenItComes) {
  CheckerOptions options = world_->options();
  world_->redis.stop();
  auto made = Checker::create(options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  made.value()->set_rules(testing::daily_rule(1));
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = made.value()->check("u", candidates);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(result.reason, Reason::kUnavailable);
  world_->redis.start();
  EXPECT_TRUE(
      wait_until([&] { return CheckerWorld::reason(*made.value(), "u") == Reason::kPassed; }));
}

TEST_P(CheckerFaults, FailClosedCapsWhileRedisIsGone) {
  CheckerOptions options = world_->options();
  options.fail_open = false;
  const auto checker = CheckerWorld::connected(options);
  world_->redis.kill();
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result =
      checker->check("u", candidates, {.deadline = 50ms, .now = {}, .segments = {}});
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_NE(result.verdicts[0].reason, Reason::kCapped);
}

TEST_P(CheckerFaults, WrongPasswordFailsOpenAndIsLogged) {
  CheckerWorld guarded({"--requirepass", "right"});
  std::mutex mutex;
  std::string logged;
  CheckerOptions options = guarded.options();
  options.redis.password = "wrong";
  options.log = [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    logged.append(line).append("\n");
  };
  auto made = Checker::create(options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  made.value()->set_rules(testing::daily_rule(1));
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = made.value()->check("u", candidates);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(result.reason, Reason::kUnavailable);
  EXPECT_TRUE(wait_until([&] {
    const std::lock_guard lock(mutex);
    return logged.find("WRONGPASS") != std::string::npos;
  })) << logged;
  const std::lock_guard lock(mutex);
  EXPECT_THAT(logged, ::testing::Not(HasSubstr("wrong\n")));
}

TEST_P(CheckerFaults, UndecodableRecordFailsOpenAndIsCounted) {
  const auto checker = CheckerWorld::connected(world_->options());
  checker->set_rules(testing::daily_rule(1));
  world_->redis.command({"SET", "fcap:{u}", "these bytes are no record"});
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kUndecodable);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(checker->stats().unjudged[Reason::kUndecodable], 1U);
  EXPECT_EQ(checker->check("other", candidates).reason, Reason::kPassed);
}

// One SET by mistake, or a broken writer. It must not cost those who share the connection
// anything.
TEST_P(CheckerFaults, AnOversizedRecordHurtsOnlyItsOwnUser) {
  constexpr std::size_t kBytes = std::size_t{70} << 20U;
  world_->record("u", 1);
  world_->redis.command({"SETRANGE", "fcap:{huge}", std::to_string(kBytes - 1), "x"});
  CheckerOptions options = world_->options();
  options.redis.stale_reset = 1min;  // on a busy machine so much takes seconds to arrive
  const auto checker = CheckerWorld::connected(options);
  const Candidate candidates[] = {{"c1"}};
  std::atomic<int> wrong{0};
  std::atomic<int> right{0};
  testing::Load others(2, [&] {
    const CheckResult result = checker->check("u", candidates);
    const bool capped = result.reason == Reason::kPassed && !result.verdicts[0].allowed;
    ++(capped ? right : wrong);
  });
  for (int i = 0; i < 2; ++i) {
    const CheckResult result = checker->check("huge", candidates);
    EXPECT_EQ(result.reason, Reason::kUndecodable);
    EXPECT_TRUE(result.verdicts[0].allowed);
  }
  const int before = right;
  EXPECT_TRUE(wait_until([&] { return right > before + 100; }));
  others.stop();
  EXPECT_EQ(wrong, 0);
  const CheckerHealth health = checker->health();
  EXPECT_EQ(health.store.reconnects, 0U);
  EXPECT_EQ(checker->stats().unjudged[Reason::kUndecodable], 2U);
}

// Checks from many threads with deadlines that some replies miss. Every user's record holds as
// many events as the user's number, so an answer tells whose it is.
class NumberedUsers {
 public:
  explicit NumberedUsers(CheckerWorld& world) {
    for (std::uint32_t user = 1; user <= kUsers; ++user) world.record(std::to_string(user), user);
  }

  void check_one(Checker& checker) {
    const Candidate candidates[] = {{"c1"}};
    const std::uint32_t number = next_.fetch_add(1);
    const std::uint32_t user = 1 + number % kUsers;
    // Every fourth has time on any machine.
    const std::chrono::microseconds deadline =
        number / kUsers % 4 == 0 ? 10s : std::chrono::microseconds(200 + user * 100);
    const CheckResult result = checker.check(std::to_string(user), candidates,
                                             {.deadline = deadline, .now = {}, .segments = {}});
    if (result.reason != Reason::kPassed) return;
    ++judged;
    if (result.verdicts[0].count != user) ++wrong;
  }

  std::atomic<int> wrong{0};
  std::atomic<int> judged{0};

 private:
  static constexpr std::uint32_t kUsers = 20;
  std::atomic<std::uint32_t> next_{0};
};

TEST_P(CheckerFaults, LateRepliesOfAFrozenRedisAreNeverTakenForAnotherUsers) {
  NumberedUsers users(*world_);
  CheckerOptions options = world_->options();
  options.redis.breaker_failures = 0;
  const auto checker = CheckerWorld::connected(options);
  testing::Load load(8, [&] { users.check_one(*checker); });
  int rounds = 0;
  EXPECT_TRUE(wait_until([&] {
    world_->redis.freeze();
    std::this_thread::sleep_for(20ms);
    world_->redis.thaw();
    std::this_thread::sleep_for(10ms);
    return ++rounds >= 15 && users.judged > 100 && checker->stats().unjudged[Reason::kTimeout] > 0;
  }));
  load.stop();
  EXPECT_EQ(users.wrong, 0);
  EXPECT_GT(checker->stats().unjudged[Reason::kTimeout], 0U);
}

TEST_P(CheckerFaults, RepliesDelayedOnTheWayAreNeverTakenForAnotherUsers) {
  NumberedUsers users(*world_);
  testing::TcpProxy proxy(world_->redis.port());
  CheckerOptions options = world_->options();
  options.redis.addresses = {proxy.address()};
  options.redis.breaker_failures = 0;
  options.redis.reconnect_backoff_max = 20ms;
  const auto checker = CheckerWorld::connected(options);
  proxy.delay_replies(2ms);
  testing::Load load(8, [&] { users.check_one(*checker); });
  const auto some_more = [&] {
    const int before = users.judged;
    return wait_until([&] { return users.judged > before + 100; });
  };
  EXPECT_TRUE(some_more());
  for (int round = 0; round < 5; ++round) {
    proxy.cut_before_next_reply();
    EXPECT_TRUE(some_more());
  }
  load.stop();
  EXPECT_EQ(users.wrong, 0);
  EXPECT_GT(checker->stats().unjudged[Reason::kTimeout], 0U);
}

FCAP_BOTH_WAYS(CheckerFaults);

}  // namespace faults_redis_test
}  // namespace fcap
