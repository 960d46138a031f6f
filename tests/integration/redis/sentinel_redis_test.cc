// A store that finds its master through Sentinels: real ones, with two replicas.
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/redis_url.h>

#include "support/redis_clients.h"
#include "support/redis_sentinels.h"
#include "support/redis_server.h"
#include "support/store_calls.h"

namespace fcap {
namespace sentinel_redis_test {

using redis::Client;
using testing::connected;
using ::testing::HasSubstr;
using testing::RedisCall;
using testing::RedisSentinels;
using testing::RedisServer;
using testing::wait_until;

class RedisBehindSentinels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    servers_ = std::make_unique<RedisSentinels>();
  }

  [[nodiscard]] RedisOptions options() const {
    return parse_redis_url(servers_->url(), testing::quick_options({})).value();
  }

  // Writes until that succeeds; whether it does.
  static bool writes(Client& client, std::string_view key, std::string_view value) {
    return wait_until([&] { return RedisCall({"SET", key, value}).on(client).text == "OK"; });
  }

  // Whether an attempt to connect fails with this.
  static ::testing::AssertionResult is_refused(const RedisOptions& options, const char* why) {
    auto client = Client::create(options);
    if (!client.ok()) return ::testing::AssertionFailure() << client.status().text();
    const auto told = [&] { return client.value()->last_error().find(why) != std::string::npos; };
    if (wait_until(told)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << client.value()->last_error();
  }

  static std::string value_of(const Client& client, const std::string& name) {
    for (const auto& [known, value] : client.health().more) {
      if (known == name) return value;
    }
    return {};
  }

  std::unique_ptr<RedisSentinels> servers_;
};

TEST_F(RedisBehindSentinels, TheMasterIsFoundAndNamed) {
  const auto client = connected(options());
  EXPECT_TRUE(writes(*client, "k", "v"));
  EXPECT_EQ(servers_->command(0, {"GET", "k"}), "v");
  EXPECT_EQ(value_of(*client, "master"), servers_->address(0));
  const std::string sentinel = value_of(*client, "sentinel");
  EXPECT_TRUE(sentinel == servers_->address(3) || sentinel == servers_->address(4) ||
              sentinel == servers_->address(5))
      << sentinel;
  EXPECT_EQ(client->health().role, ServerRole::kMaster);
}

TEST_F(RedisBehindSentinels, ASentinelThatIsDownAndOneThatIsFrozenAreSkipped) {
  servers_->kill(3);
  servers_->freeze(4);
  const auto client = connected(options());
  EXPECT_TRUE(writes(*client, "k", "v"));
  EXPECT_EQ(value_of(*client, "sentinel"), servers_->address(5));
}

TEST_F(RedisBehindSentinels, AKilledMastersSuccessorIsFoundTwiceInARow) {
  RedisOptions with_threads = options();
  with_threads.io_threads = 2;
  const auto client = connected(with_threads);
  servers_->kill(5);  // two are enough to agree
  for (int round = 0; round < 2; ++round) {
    // On a busy machine, Sentinels may have replaced one that was only slow.
    int master = servers_->master();
    const std::uint64_t epoch = client->connection_epoch();
    servers_->kill_master(master);
    const std::string value = std::to_string(round);
    EXPECT_TRUE(writes(*client, "k", value)) << client->last_error();
    EXPECT_NE(client->connection_epoch(), epoch);
    const int former = master;
    master = servers_->wait_for_other_master(former);
    ASSERT_GE(master, 0);
    EXPECT_EQ(servers_->command(master, {"GET", "k"}), value);
    EXPECT_TRUE(wait_until([&] { return client->connected(); })) << client->last_error();
    servers_->start(former);
    ASSERT_TRUE(servers_->wait_for_replicas(2));
  }
}

TEST_F(RedisBehindSentinels, ADemotedMasterThatStillAnswersAsAMasterIsLeft) {
  // The Sentinels use the default account, and are locked out: to them the master is down, and they
  // cannot tell it that it is no master any more. The store's account still works.
  for (int node = 0; node < RedisSentinels::kServers; ++node) {
    EXPECT_EQ(servers_->command(node, {"ACL", "SETUSER", "app", "on", ">app", "~*", "+@all"}),
              "OK");
  }
  RedisOptions as_app = options();
  as_app.user = as_app.password = "app";
  const auto client = connected(as_app);
  const std::vector<std::string> app = {"--user", "app", "--pass", "app", "--no-auth-warning"};
  servers_->notice_soon();
  EXPECT_EQ(servers_->command(0, {"ACL", "SETUSER", "default", "off"}, app), "OK");
  servers_->command(0, {"CLIENT", "KILL", "USER", "default"}, app);
  const int master = servers_->wait_for_other_master(0);
  ASSERT_GT(master, 0);
  EXPECT_THAT(servers_->command(0, {"ROLE"}, app), ::testing::StartsWith("master"));
  EXPECT_TRUE(wait_until([&] {
    return writes(*client, "k", "v") && servers_->command(master, {"GET", "k"}) == "v";
  })) << client->last_error();
  EXPECT_EQ(value_of(*client, "master"), servers_->address(master));
}

TEST_F(RedisBehindSentinels, AFailoverOnRequestIsFollowed) {
  const auto client = connected(options());
  EXPECT_TRUE(wait_until([&] {
    return servers_->command(4, {"SENTINEL", "FAILOVER", "fcap"}) == "OK";
  }));
  const int master = servers_->wait_for_other_master(0);
  ASSERT_GT(master, 0);
  EXPECT_TRUE(wait_until([&] {
    return writes(*client, "k", "v") && servers_->command(master, {"GET", "k"}) == "v";
  })) << client->last_error();
}

TEST_F(RedisBehindSentinels, WhatIsSetWronglyIsNamed) {
  RedisOptions wrong = options();
  wrong.sentinel_master = "other";
  EXPECT_TRUE(is_refused(wrong, "knows no master \"other\" (option sentinel_master)"));
  wrong = options();
  wrong.addresses = {servers_->address(0)};
  EXPECT_TRUE(is_refused(wrong, "this is no Sentinel: the option addresses"));
  wrong = options();
  wrong.topology = RedisTopology::kSingle;
  wrong.sentinel_master.clear();
  wrong.addresses = {servers_->address(3)};
  EXPECT_TRUE(is_refused(wrong, "Sentinel's port"));
  wrong.addresses = {servers_->address(1)};
  wrong.master_only = true;
  EXPECT_TRUE(is_refused(wrong, "the option addresses must name the master"));
}

TEST_F(RedisBehindSentinels, AnAccountThatMayNotAskForTheRoleIsRefused) {
  servers_->command(0, {"ACL", "SETUSER", "shy", "on", ">shy", "~*", "+@all", "-role"});
  RedisOptions shy = options();
  shy.user = shy.password = "shy";
  EXPECT_TRUE(is_refused(shy, "allow the command ROLE"));
}

TEST_F(RedisBehindSentinels, SentinelsHaveTheirOwnAccounts) {
  for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
    EXPECT_EQ(servers_->command(node, {"ACL", "SETUSER", "asker", "on", ">s",
                                       "+sentinel|get-master-addr-by-name"}),
              "OK");
    EXPECT_EQ(servers_->command(node, {"ACL", "SETUSER", "default", "off"}), "OK");
  }
  RedisOptions asker = options();
  EXPECT_TRUE(is_refused(asker, "set the option sentinel_password"));
  asker.sentinel_user = "asker";
  asker.sentinel_password = "wrong";
  EXPECT_TRUE(is_refused(asker, "options sentinel_user, sentinel_password"));
  asker.sentinel_password = "s";
  const auto client = connected(asker);
  EXPECT_TRUE(writes(*client, "k", "v"));
}

TEST_F(RedisBehindSentinels, AChangedPasswordOfTheSentinelsIsReadFromItsFile) {
  const auto set_user = [&](const std::vector<std::string>& rules) {
    for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
      std::vector<std::string> words = {"ACL", "SETUSER", "asker"};
      words.insert(words.end(), rules.begin(), rules.end());
      EXPECT_EQ(servers_->command(node, words), "OK");
    }
  };
  const testing::TemporaryDirectory directory;
  RedisOptions asker = options();
  asker.sentinel_user = "asker";
  asker.sentinel_password_file = (directory.path() / "password").string();
  const auto write = [&](const std::string& password) {
    std::ofstream(asker.sentinel_password_file) << password << "\n";
  };
  set_user({"on", ">one", "+sentinel|get-master-addr-by-name"});
  write("one");
  const auto client = connected(asker);
  EXPECT_TRUE(writes(*client, "k", "v"));

  // Their connections end with the password that they were made with.
  write("two");
  set_user({">two", "<one"});
  int ended = 0;
  for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
    ended += std::stoi(servers_->command(node, {"CLIENT", "KILL", "USER", "asker"}));
  }
  EXPECT_GE(ended, 1);
  const int former = servers_->master();
  servers_->kill_master(former);
  ASSERT_GE(servers_->wait_for_other_master(former), 0);
  EXPECT_TRUE(writes(*client, "k", "w"));
}

TEST_F(RedisBehindSentinels, AClientIsDestroyedWhileNoSentinelAnswers) {
  for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
    servers_->freeze(node);
  }
  RedisOptions slow = options();
  slow.connect_timeout = std::chrono::hours{1};
  for (int i = 0; i < 20; ++i) {
    auto client = Client::create(slow);
    ASSERT_TRUE(client.ok());
    std::this_thread::sleep_for(std::chrono::milliseconds{i});
  }
}

}  // namespace sentinel_redis_test
}  // namespace fcap
