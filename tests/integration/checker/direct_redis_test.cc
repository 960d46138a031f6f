// Checks that read on their callers' own threads.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/checker_test.h"
#include "support/tcp_proxy.h"

namespace fcap {
namespace direct_redis_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using testing::wait_until;

class CheckerDirect : public testing::CheckerTest {
 protected:
  static bool capped(Checker& checker, std::string_view user) {
    const Candidate candidates[] = {{"c1"}};
    const CheckResult result = checker.check(user, candidates);
    EXPECT_EQ(result.reason, Reason::kPassed);
    return !result.verdicts.front().allowed;
  }

  // One that has no connection yet but that of its I/O thread.
  [[nodiscard]] std::unique_ptr<Checker> with_one_connection() const {
    auto made = Checker::create(world_->options());
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (!made.ok()) return nullptr;
    EXPECT_TRUE(wait_until([&] { return made.value()->health().store.connected; }));
    EXPECT_TRUE(wait_until([this] { return client_ids().size() == 1; }));
    made.value()->set_rules(testing::daily_rule(1));
    return std::move(made).value();
  }

  // The ids of the clients that Redis has, but for the one that asks.
  [[nodiscard]] std::vector<std::string> client_ids() const {
    std::vector<std::string> ids;
    const std::string list = world_->redis.command({"CLIENT", "LIST"});
    for (std::size_t at = 0; (at = list.find("id=", at)) != std::string::npos;
         at = list.find('\n', at)) {
      const std::string line = list.substr(at, list.find('\n', at) - at);
      if (line.find("cmd=client") == std::string::npos) {
        ids.push_back(line.substr(3, line.find(' ') - 3));
      }
      if (list.find('\n', at) == std::string::npos) break;
    }
    return ids;
  }

  // Whether checks are answered directly, from now on.
  static bool reads_directly(Checker& checker) {
    const auto before = CheckerWorld::direct_reads(checker);
    return wait_until([&] {
      return CheckerWorld::reason(checker, "nobody") == Reason::kPassed &&
             CheckerWorld::direct_reads(checker) > before;
    });
  }
};

TEST_F(CheckerDirect, EveryFormOfALoneReadIsDirect) {
  world_->record("u", 1);
  const auto checker = CheckerWorld::connected(world_->options());
  const auto before = CheckerWorld::direct_reads(*checker);
  EXPECT_TRUE(capped(*checker, "u"));
  EXPECT_FALSE(capped(*checker, "another"));
  const Candidate candidates[] = {{"c1"}};
  EXPECT_TRUE(checker->first_allowed("u", candidates, 1).picked.empty());
  const CheckRequest users[] = {{.subject = "u", .candidates = candidates}};
  EXPECT_FALSE(checker->check_batch(users).front().verdicts.front().allowed);
  EXPECT_EQ(CheckerWorld::direct_reads(*checker), before + 4);
  EXPECT_EQ(checker->stats().reads.found, 3U);
}

TEST_F(CheckerDirect, ConnectionsAreMadeWhenABlockingCheckAsksForThem) {
  const auto checker = with_one_connection();
  ASSERT_NE(checker, nullptr);
  EXPECT_TRUE(reads_directly(*checker));
  EXPECT_TRUE(wait_until([&] { return client_ids().size() == 3; }));
}

TEST_F(CheckerDirect, ALateReplyReachesNobodyAndItsConnectionStays) {
  world_->record("u", 1);
  testing::TcpProxy proxy(world_->redis.port());
  CheckerOptions options = world_->options();
  options.redis.addresses = {proxy.address()};
  options.redis.breaker_failures = 0;
  const auto checker = CheckerWorld::connected(options);
  ASSERT_TRUE(wait_until([&] { return proxy.accepted() == 3; }));
  for (int round = 0; round < 10; ++round) {
    proxy.stall_replies(true);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(CheckerWorld::reason(*checker, "u", 100ms), Reason::kTimeout);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 100ms);
    // Where this thread was late for a read of its own, the I/O thread has it.
    const auto timeouts = static_cast<std::uint64_t>(round) + 1;
    EXPECT_TRUE(wait_until([&] { return checker->health().store.timeouts >= timeouts; }));
    proxy.stall_replies(false);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(capped(*checker, "another"));
    EXPECT_TRUE(reads_directly(*checker));
    EXPECT_TRUE(capped(*checker, "u"));
  }
  EXPECT_EQ(proxy.accepted(), 3U);
  EXPECT_EQ(checker->stats().unjudged[Reason::kTimeout], 10U);
  EXPECT_EQ(checker->health().store.timeouts, 10U);
}

TEST_F(CheckerDirect, ALostConnectionCostsNoCheckAndIsMadeAgain) {
  world_->record("u", 1);
  const auto checker = with_one_connection();
  ASSERT_NE(checker, nullptr);
  const std::vector<std::string> own = client_ids();  // the I/O thread's
  ASSERT_EQ(own.size(), 1U);
  std::atomic<int> wrong{0};
  const Candidate candidates[] = {{"c1"}};
  testing::Load load(2, [&] {
    const CheckResult result = checker->check("u", candidates);
    if (result.reason != Reason::kPassed || result.verdicts.front().allowed) ++wrong;
  });
  for (int round = 0; round < 20; ++round) {
    for (const std::string& id : client_ids()) {
      if (id != own.front()) world_->redis.command({"CLIENT", "KILL", "ID", id});
    }
    EXPECT_TRUE(reads_directly(*checker));
  }
  load.stop();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(checker->health().store.reconnects, 0U);
  EXPECT_EQ(checker->health().store.failures, 0U);
}

TEST_F(CheckerDirect, TheyFollowTheLinkToAnotherServer) {
  CheckerWorld other;
  other.record("u", 1);
  testing::TcpProxy proxy(world_->redis.port());
  CheckerOptions options = world_->options();
  options.redis.addresses = {proxy.address()};
  options.redis.connection_max_age = 1s;
  const auto checker = CheckerWorld::connected(options);
  EXPECT_FALSE(capped(*checker, "u"));
  proxy.lead_to(other.redis.port());
  ASSERT_TRUE(wait_until([&] { return capped(*checker, "u"); }));
  // Nobody is left behind at the former server.
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(capped(*checker, "u"));
  EXPECT_TRUE(reads_directly(*checker));
}

TEST_F(CheckerDirect, ErrorsOfTheServerAreCountedAndTold) {
  world_->redis.command({"SET", "fcap:{list}", "x"});
  world_->redis.command({"DEL", "fcap:{list}"});
  world_->redis.command({"LPUSH", "fcap:{list}", "x"});
  const auto checker = CheckerWorld::connected(world_->options());
  const auto before = CheckerWorld::direct_reads(*checker);
  EXPECT_EQ(CheckerWorld::reason(*checker, "list"), Reason::kUnavailable);
  EXPECT_EQ(CheckerWorld::direct_reads(*checker), before + 1);
  EXPECT_TRUE(wait_until([&] { return checker->health().store.server_errors == 1; }));
  EXPECT_NE(checker->health().store.last_error.find("WRONGTYPE"), std::string::npos)
      << checker->health().store.last_error;
  EXPECT_TRUE(reads_directly(*checker));
}

TEST_F(CheckerDirect, NoneAreMadeWhereTheOptionIsZero) {
  world_->direct_connections = 0;
  const auto checker = CheckerWorld::connected(world_->options());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(capped(*checker, "u"));
  EXPECT_EQ(CheckerWorld::direct_reads(*checker), 0U);
  EXPECT_EQ(client_ids().size(), 1U);
}

TEST_F(CheckerDirect, ManyThreadsUnderEveryMishapNeverGetAnothersAnswer) {
  for (int user = 0; user < 10; ++user) {
    if (user % 2 == 0) world_->record("user" + std::to_string(user), 1);
  }
  testing::TcpProxy proxy(world_->redis.port());
  CheckerOptions options = world_->options();
  options.redis.addresses = {proxy.address()};
  options.redis.breaker_failures = 0;
  options.redis.reconnect_backoff_max = 20ms;
  const auto checker = CheckerWorld::connected(options);
  proxy.delay_replies(2ms);
  std::atomic<int> wrong{0};
  std::atomic<int> judged{0};
  std::atomic<int> next{0};
  testing::Load load(3, [&] {
    const int user = next++ % 10;
    const Candidate candidates[] = {{"c1"}};
    const CheckResult result =
        checker->check("user" + std::to_string(user), candidates,
                       {.deadline = next % 3 == 0 ? 1ms : 20ms, .now = {}, .segments = {}});
    if (result.reason != Reason::kPassed) return;
    if (result.verdicts.front().allowed == (user % 2 == 0)) ++wrong;
    ++judged;
  });
  for (int round = 0; round < 10; ++round) {
    const int before = judged;
    EXPECT_TRUE(wait_until([&] { return judged > before + 50; }));
    if (round % 2 == 0) proxy.cut_before_next_reply();
    if (round % 5 == 0) proxy.cut();
  }
  load.stop();
  EXPECT_EQ(wrong, 0);
}

}  // namespace direct_redis_test
}  // namespace fcap
