// What checks and hard calls say while one shard of a cluster lacks events, of its users and of all
// others.
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "redis/client.h"
#include "redis/config_record.h"
#include "support/reserving.h"
#include "support/updater_on_cluster.h"
#include "test_paths.h"

namespace fcap {
namespace cluster_gaps_path_test {

using nlohmann::json;
using redis::SlotSet;
using testing::Process;
using testing::RedisCluster;
using testing::Slots;
using testing::wait_until;

constexpr std::chrono::minutes kPatience{2};
constexpr const char* kConfigKey = "fcap:!config";
constexpr const char* kRules = R"({"version": 1, "campaigns": [], "rules": [
  {"id": "daily", "scope": "campaign", "target": "*", "event_type": "impression", "limit": 1000,
   "window": {"kind": "sliding", "length": "24h"}}]})";

class ClusterGaps : public testing::UpdaterOnCluster {
 protected:
  static constexpr int kStrangersPartition = 2;

  void SetUp() override {
    UpdaterOnCluster::SetUp();
    if (IsSkipped()) return;
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      // Else nobody is answered while one shard is away.
      ASSERT_EQ(cluster_->command(node, {"CONFIG", "SET", "cluster-require-full-coverage", "no"}),
                "OK");
      testing::make_reserver(
          [this, node](const auto& words) { return cluster_->command(node, words); });
    }
    config_shard_ = shard_of(redis::slot_of(kConfigKey));
    // Without it nothing could be stated.
    lacking_ = (config_shard_ + 1) % RedisCluster::kShards;
    for (int i = 0; stranger_.empty(); ++i) {
      const std::string user = fmt::format("stranger-{}", i);
      if (shard_of(redis::slot_of(user)) == lacking_) stranger_ = user;
    }
    rules_ = (files_.path() / "rules.json").string();
    std::ofstream(rules_) << kRules;
  }

  static int shard_of(int slot) {
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      const Slots slots = RedisCluster::slots_of(shard);
      if (slots.first <= slot && slot <= slots.last) return shard;
    }
    return -1;
  }
  [[nodiscard]] std::vector<int> well() const {
    std::vector<int> shards;
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      if (shard != lacking_) shards.push_back(shard);
    }
    return shards;
  }
  [[nodiscard]] std::string dead_letters() const { return topic_ + ".later"; }

  [[nodiscard]] std::unique_ptr<Process> start_updater() const {
    return start("run", {"--kafka.dead_letter_topic", dead_letters(), "--http.port", "0",
                         "--kafka.properties", R"({"session.timeout.ms": "15000"})"});
  }
  void expect_counted(const Process& updater) {
    EXPECT_TRUE(wait_until([&] { return expected_.compare(*store_).none(); }, kPatience))
        << updater.errors();
  }
  // Everything that was produced is counted, and this process may reserve.
  std::unique_ptr<Process> start_all() {
    const testing::MadeEvent event{
        .user_id = stranger_,
        .campaign_id = "c",
        .event_id = "e",
        .time = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
    producer_->send(topic_, event.user_id, event.json(), kStrangersPartition);
    produce(3'000);
    auto updater = start_updater();
    expect_counted(*updater);
    EXPECT_TRUE(wait_until(
        [&] {
          return cluster_->command(lacking_, {"EXISTS", "fcap:{" + stranger_ + "}"}) == "1";
        },
        kPatience))
        << updater->errors();
    checker_ = testing::reserving_checker(
        testing::reserver_options(testing::options_of(cluster_->url())), 1000);
    return updater;
  }

  [[nodiscard]] std::string config() const {
    return cluster_->command(config_shard_, {"GET", kConfigKey});
  }
  [[nodiscard]] redis::ConfigRecord::MissingBefore stated() const {
    const auto record = redis::parse_config(config());
    return record.ok() ? record.value().missing_before : redis::ConfigRecord::MissingBefore{};
  }
  [[nodiscard]] SlotSet stated_slots() const {
    SlotSet slots;
    for (const auto& [topic, partitions] : stated()) {
      for (const auto& [partition, events] : partitions) slots |= events.slots;
    }
    return slots;
  }
  [[nodiscard]] SlotSet lacking_slots() const {
    const Slots slots = RedisCluster::slots_of(lacking_);
    return {slots.first, slots.last};
  }
  void wait_until_read(bool missing) {
    EXPECT_TRUE(wait_until(
        [&] { return checker_->health().store.missing_before.has_value() == missing; }, kPatience))
        << config();
  }

  Reason hard_call(int shard) {
    const std::string id = fmt::format("slot-{}", ++hard_calls_);
    const std::string user = RedisCluster::user_of(shard);
    return checker_->hard({HardCall::kReserve, {user, {"quiet"}, id}}).reason;
  }
  // Nothing: it was not answered from Redis.
  std::optional<bool> says_complete(int shard) {
    const Candidate candidates[] = {{"quiet"}};
    const CheckResult result = checker_->check(RedisCluster::user_of(shard), candidates);
    if (result.reason != Reason::kPassed) return std::nullopt;
    return result.verdicts.at(0).complete;
  }
  [[nodiscard]] bool explained_complete(int shard) const {
    const testing::Finished finished =
        testing::run({FCAP_CLI_BINARY, "explain", RedisCluster::user_of(shard), "quiet", "--redis",
                      cluster_->url(), "--rules", rules_, "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    const json answer = json::parse(finished.output, nullptr, false);
    const bool complete = answer["verdicts"][0]["complete"].get<bool>();
    EXPECT_EQ(answer.contains("missing_before"), !complete) << answer;
    return complete;
  }
  void expect_decided(int shard) {
    EXPECT_EQ(hard_call(shard), Reason::kDone) << "shard " << shard << ": " << config();
    EXPECT_EQ(says_complete(shard), true) << "shard " << shard << ": " << config();
  }
  void expect_all_decided() {
    wait_until_read(false);
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) expect_decided(shard);
  }

  void expect_only_the_others_decided() {
    EXPECT_TRUE(wait_until([&] { return stated_slots() == lacking_slots(); }, kPatience))
        << config();
    EXPECT_TRUE(wait_until([&] { return says_complete(lacking_) == false; }, kPatience))
        << config();
    EXPECT_EQ(hard_call(lacking_), Reason::kIncomplete) << config();
    EXPECT_FALSE(explained_complete(lacking_));
    for (const int shard : well()) {
      // The Checker may still know an earlier statement, about all users.
      EXPECT_TRUE(wait_until([&] { return says_complete(shard) == true; }, kPatience)) << config();
      expect_decided(shard);
      EXPECT_TRUE(explained_complete(shard));
    }
  }

  int config_shard_ = 0;
  int lacking_ = 0;
  std::string stranger_;
  testing::TemporaryDirectory files_;
  std::string rules_;
  std::unique_ptr<Checker> checker_;
  int hard_calls_ = 0;
};

TEST_F(ClusterGaps, AFrozenShardLeavesTheOtherShardsUsersDecided) {
  const auto updater = start_all();
  ASSERT_NE(checker_, nullptr) << updater->errors();
  expect_all_decided();
  cluster_->kill(cluster_->replica(lacking_));
  {
    const auto frozen = cluster_->freeze(lacking_);
    produce(3'000);
    EXPECT_TRUE(wait_until([&] { return stated_slots() == lacking_slots(); }, kPatience))
        << config() << updater->errors();
    wait_until_read(true);
    for (const int shard : well()) expect_decided(shard);
    EXPECT_EQ(stated_slots(), lacking_slots()) << config();
  }
  expect_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return stated().empty(); }, kPatience))
      << config() << updater->errors();
  expect_all_decided();
}

// The gap stays open because a letter of it has nowhere to go: an event of a user whose key is of
// another type, while there is no dead-letter topic.
TEST_F(ClusterGaps, OnlyUsersOfTheShardThatLacksEventsAreUndecidedUntilTheGapIsClosed) {
  auto updater = start_all();
  ASSERT_NE(checker_, nullptr) << updater->errors();
  expect_all_decided();
  ASSERT_EQ(
      cluster_->command(
          lacking_,
          {"EVAL", "redis.call('FLUSHALL') redis.call('HSET', KEYS[1], 'a', '1') return 'lost'",
           "1", "fcap:{" + stranger_ + "}"}),
      "lost");
  const auto only_strangers = [&] {
    const auto missing = stated();
    const auto topic = missing.find(redis::missing_before_name(topic_, topic_));
    return topic != missing.end() && topic->second.size() == 1 &&
           topic->second.contains(std::to_string(kStrangersPartition));
  };
  EXPECT_TRUE(wait_until(only_strangers, kPatience)) << config() << updater->errors();
  wait_until_read(true);
  expect_only_the_others_decided();

  // The next updater finds the gap in the shard's mark.
  updater->send_signal(SIGTERM);
  EXPECT_TRUE(updater->wait_for(kPatience)) << updater->errors();
  expect_only_the_others_decided();
  updater = start_updater();
  produce(500);
  expect_counted(*updater);
  EXPECT_TRUE(only_strangers()) << config();
  expect_only_the_others_decided();

  kafka->create_topic(dead_letters(), 1);
  EXPECT_TRUE(wait_until([&] { return stated().empty(); }, kPatience))
      << config() << updater->errors();
  expect_all_decided();
}

// The group gives the partitions to the next updater only after the session of the one that was
// killed. That takes longer than the 10 s after which a Checker looks.
TEST_F(ClusterGaps, AnEmptiedClusterWithoutOwnersHasNothingCompleteBeforeAllEventsAreBack) {
  auto updater = start_all();
  ASSERT_NE(checker_, nullptr) << updater->errors();
  expect_all_decided();
  updater->kill();
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(cluster_->command(shard, {"FLUSHALL"}), "OK");
  }
  updater = start_updater();
  const auto all_say = [this](bool complete) {
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      if (says_complete(shard) != complete) return false;
    }
    return true;
  };
  ASSERT_TRUE(wait_until([&] { return all_say(false); }, kPatience)) << config();
  EXPECT_TRUE(wait_until(
      [&] {
        const Reason reason = hard_call(lacking_);
        if (reason != Reason::kDone) return says_complete(lacking_) == true;
        EXPECT_TRUE(expected_.compare(*store_).none()) << config() << updater->errors();
        return true;
      },
      kPatience));
  EXPECT_TRUE(expected_.compare(*store_).none()) << config() << updater->errors();
  EXPECT_TRUE(wait_until([&] { return stated().empty() && all_say(true); }, kPatience)) << config();
}

}  // namespace cluster_gaps_path_test
}  // namespace fcap
