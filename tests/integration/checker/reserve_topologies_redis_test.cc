// Hard calls and shared notes on real servers: one of them, behind Sentinels, and in a cluster,
// with the account that is shipped for it.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ledger/ids.h"
#include "support/cluster_test.h"
#include "support/redis_sentinels.h"
#include "support/redis_test.h"
#include "support/reserving.h"
#include "tests/support/asking.h"

namespace fcap {
namespace reserve_topologies_redis_test {

using namespace std::chrono_literals;
using testing::wait_until;

constexpr Candidate kCandidates[] = {{"c"}, {"d"}};

// All forms, for one user of whom nothing is recorded; at most one impression of each campaign.
void use_all_forms(Checker& checker, Checker& other, const std::string& user) {
  const CheckResult check = checker.check(user, kCandidates, {.keep_record = true});
  ASSERT_EQ(check.reason, Reason::kPassed);
  const HardResult first = checker.hard({HardCall::kReserve, {user, {"c"}, "a", {}, check.token}});
  EXPECT_TRUE(first.allowed) << describe(first.reason);
  EXPECT_EQ(other.hard({HardCall::kReserve, {user, {"c"}, "b"}}).reason, Reason::kCapped);
  EXPECT_TRUE(other.hard({HardCall::kRelease, {user, {"c"}, "a"}}).allowed);
  EXPECT_EQ(checker.hard({HardCall::kReserve, {user, {"c"}, "a"}}).reason, Reason::kReleased);
  EXPECT_TRUE(checker.hard({HardCall::kRecord, {user, {"c"}, "r"}}).allowed);
  EXPECT_EQ(other.hard({HardCall::kRecord, {user, {"c"}, "s"}}).reason, Reason::kCapped);
  const std::string_view ids[] = {"p", "q"};
  const PagePicks picks = other.pick({Promise::kReserved, user, kCandidates, ids});
  ASSERT_EQ(picks.picks.size(), 2U);
  EXPECT_EQ(picks.picks[0].candidate, 1U);
  EXPECT_FALSE(picks.picks[1].candidate.has_value());
}

class OneServer : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    testing::make_reserver([this](const auto& words) { return redis_->command(words); });
  }
  void configure() {
    ASSERT_EQ(redis_->command({"SET", "fcap:!config", testing::config_for_reserving()}), "OK");
  }
  [[nodiscard]] CheckerOptions options() const {
    RedisOptions reach;
    reach.addresses = {redis_->address()};
    return testing::reserver_options(reach);
  }
};

TEST_F(OneServer, AllFormsWorkWithTheShippedAccount) {
  configure();
  const auto checker = testing::reserving_checker(options(), 1);
  const auto other = testing::reserving_checker(options(), 1);
  ASSERT_TRUE(checker && other);
  use_all_forms(*checker, *other, "u");
  EXPECT_GT(redis_->number({"PTTL", "fcap:{u}"}), 31LL * 24 * 3600 * 1000);
}

TEST_F(OneServer, ASharedNoteIsOneWriteAndGivesTheRecordAnExpiry) {
  configure();
  const auto checker = testing::reserving_checker(options(), 1);
  const auto other = testing::reserving_checker(options(), 1);
  ASSERT_TRUE(checker && other);
  const CheckResult check = checker->check("n", kCandidates);
  EXPECT_TRUE(checker->note_shown({"n", {"c"}, "note", {}, check.token}, Note::kEverywhere));
  EXPECT_TRUE(wait_until([&] { return redis_->number({"STRLEN", "fcap:{n}"}) == 23; }));
  EXPECT_TRUE(wait_until([&] { return redis_->number({"PTTL", "fcap:{n}"}) > 0; }));
  EXPECT_EQ(other->hard({HardCall::kReserve, {"n", {"c"}, "x"}}).reason, Reason::kCapped);
  EXPECT_TRUE(checker->take_back_shown({"n", {"c"}, "note"}));
  EXPECT_TRUE(wait_until([&] { return redis_->number({"STRLEN", "fcap:{n}"}) == 46; }));
  EXPECT_TRUE(other->hard({HardCall::kReserve, {"n", {"c"}, "x"}}).allowed);
  EXPECT_EQ(checker->stats().shares.failed, 0U);
}

TEST_F(OneServer, WithoutTheRightsItSaysThatTheStoreRefuses) {
  configure();
  const auto checker = testing::reserving_checker(options(), 1);
  ASSERT_TRUE(checker);
  redis_->command({"ACL", "SETUSER", "reserver", "-eval", "-evalsha", "-set", "-append"});
  const HardResult result = checker->hard({HardCall::kReserve, {"u", {"c"}, "a"}});
  EXPECT_FALSE(result.allowed);
  EXPECT_FALSE(result.unknown);
  EXPECT_EQ(result.reason, Reason::kUnavailable);
}

class BehindSentinels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    servers_ = std::make_unique<testing::RedisSentinels>();
    for (int node = 0; node < testing::RedisSentinels::kServers; ++node) {
      testing::make_reserver([&](const auto& words) { return servers_->command(node, words); });
    }
    servers_->command(0, {"SET", "fcap:!config", testing::config_for_reserving()});
  }
  [[nodiscard]] CheckerOptions options() const {
    return testing::reserver_options(
        parse_redis_url(servers_->url(), testing::quick_options({})).value());
  }

  std::unique_ptr<testing::RedisSentinels> servers_;
};

TEST_F(BehindSentinels, AllFormsGoToTheMasterAndToItsSuccessor) {
  const auto checker = testing::reserving_checker(options(), 1);
  const auto other = testing::reserving_checker(options(), 1);
  ASSERT_TRUE(checker && other);
  use_all_forms(*checker, *other, "u1");
  ASSERT_TRUE(servers_->wait_for_replicas(2));
  servers_->command(0, {"WAIT", "2", "10000"});
  servers_->kill_master(0);
  ASSERT_GE(servers_->wait_for_other_master(0), 0);
  // What the replica had is still refused; a call that fails meanwhile fails closed.
  EXPECT_TRUE(wait_until([&] {
    const HardResult result = checker->hard({HardCall::kReserve, {"u1", {"c"}, "late"}});
    EXPECT_FALSE(result.allowed);
    return result.reason == Reason::kCapped;
  }));
  EXPECT_TRUE(wait_until([&] {
    return other->hard({HardCall::kReserve, {"u2", {"c"}, "x"}}).allowed;
  }));
  use_all_forms(*checker, *other, "u3");
}

class InACluster : public testing::ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    for (int node = 0; node < testing::RedisCluster::kMembers; ++node) {
      testing::make_reserver([&](const auto& words) { return cluster_->command(node, words); });
    }
    const auto expiry =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
    EXPECT_EQ(testing::StoreCalls(*store_)
                  .compare_and_set("fcap:!config", {}, testing::config_for_reserving(), expiry)
                  .code,
              StoreCode::kOk);
  }
  [[nodiscard]] std::unique_ptr<Checker> checker() const {
    return testing::reserving_checker(testing::reserver_options(options()), 1);
  }
};

TEST_F(InACluster, AllFormsWorkOnEveryShard) {
  const auto one = checker();
  const auto other = checker();
  ASSERT_TRUE(one && other);
  for (int shard = 0; shard < testing::RedisCluster::kShards; ++shard) {
    use_all_forms(*one, *other, testing::RedisCluster::user_of(shard));
  }
}

TEST_F(InACluster, ABatchReachesAllShardsAndAFrozenOneCostsOnlyItsOwnUsers) {
  const auto one = checker();
  const auto other = checker();
  ASSERT_TRUE(one && other);
  constexpr std::size_t kOfEach = 20;
  std::vector<std::string> users;  // those of shard 0 first
  for (int shard = 0; shard < testing::RedisCluster::kShards; ++shard) {
    const auto slots = testing::RedisCluster::slots_of(shard);
    for (const std::string& user : testing::RedisCluster::users_in(slots, kOfEach)) {
      users.push_back(user);
    }
  }
  const auto reserve_all = [&](Checker& checker, const char* id, std::chrono::seconds deadline) {
    std::vector<Impression> requests;
    for (const std::string& user : users) requests.push_back({user, {"c"}, id});
    return checker.hard_batch(asking(HardCall::kReserve, requests), {.deadline = deadline});
  };
  for (const HardResult& result : reserve_all(*one, "a", 30s)) EXPECT_TRUE(result.allowed);
  cluster_->set_node_timeout(60s);
  const auto frozen = cluster_->freeze(0);
  std::vector<HardResult> results;
  // However much time there is, the frozen shard's users take all of it; the others take what the
  // machine needs.
  for (auto time = 2s; time <= 64s; time *= 2) {
    results = reserve_all(*other, "b", time);
    ASSERT_EQ(results.size(), users.size());
    const auto late = [](const auto& result) { return result.reason == Reason::kTimeout; };
    if (std::none_of(results.begin() + kOfEach, results.end(), late)) break;
  }
  for (std::size_t i = 0; i < users.size(); ++i) {
    EXPECT_FALSE(results[i].allowed);
    EXPECT_EQ(results[i].reason == Reason::kCapped, i >= kOfEach) << users[i];
  }
}

TEST_F(InACluster, WhileSlotsMoveNobodyExceedsAndNotesArrive) {
  const auto one = checker();
  const auto other = checker();
  ASSERT_TRUE(one && other);
  constexpr testing::Slots kMoved{0, 1023};
  const std::vector<std::string> users = testing::RedisCluster::users_in(kMoved, 200);
  std::jthread mover([&] { cluster_->move_slots(0, 1, kMoved); });
  for (const std::string& user : users) {
    EXPECT_TRUE(wait_until([&] {
      return one->hard({HardCall::kReserve, {user, {"c"}, "a"}}).allowed;
    })) << user;
    EXPECT_TRUE(wait_until([&] {
      return other->hard({HardCall::kReserve, {user, {"c"}, "b"}}).reason == Reason::kCapped;
    })) << user;
    const CheckResult check = one->check(user, kCandidates);
    one->note_shown({user, {"d"}, "note", {}, check.token}, Note::kEverywhere);
  }
  mover.join();
  const std::uint64_t unsent = users.size() - one->stats().shares.shared;
  EXPECT_EQ(unsent, 0U);
  std::size_t missing = 0;
  for (const std::string& user : users) {
    if (other->hard({HardCall::kReserve, {user, {"d"}, "x"}}).reason != Reason::kCapped) ++missing;
  }
  EXPECT_LE(missing, one->stats().shares.failed);
}

}  // namespace reserve_topologies_redis_test
}  // namespace fcap
