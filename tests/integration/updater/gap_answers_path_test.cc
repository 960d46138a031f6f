// What checks and hard calls say after a loss, while the daemon fills a gap, and when it has filled
// it.
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcap/checker.h>
#include <fcap/redis_url.h>

#include "redis/config_record.h"
#include "support/redis_cluster.h"
#include "support/redis_sentinels.h"
#include "support/updater_pipeline.h"
#include "test_paths.h"
#include "updater/marks/mark_value.h"

namespace fcap {
namespace gap_answers_path_test {

using nlohmann::json;
using testing::Process;
using testing::RedisCluster;
using testing::wait_until;

constexpr const char* kRules = R"({"version": 1, "campaigns": [], "rules": [
  {"id": "two-a-day", "scope": "campaign", "target": "*", "event_type": "impression", "limit": 2,
   "window": {"kind": "sliding", "length": "24h"}}]})";

class GapAnswers : public testing::UpdaterPipeline {
 protected:
  static constexpr int kStrangersPartition = 2;

  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    rules_ = (files_.path() / "rules.json").string();
    std::ofstream(rules_) << kRules;
    set_config(kafka->brokers());
    CheckerOptions options;
    options.redis = parse_redis_url(redis_url()).value();
    options.deadline = std::chrono::seconds{30};
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    Rule rule;
    rule.id = "two-a-day";
    rule.target = "*";
    rule.limit = 2;
    rule.window.length = std::chrono::hours{24};
    auto rules = RuleSet::build({.version = 1, .rules = {rule}, .campaigns = {}}, {});
    ASSERT_TRUE(rules.ok()) << rules.status().text();
    checker_->set_rules(rules.value());
  }

  [[nodiscard]] std::string redis_url() const {
    if (cluster_) return cluster_->url();
    return sentinels_ ? sentinels_->url() : redis_->address();
  }
  // To the server that is to lose its data; where Sentinels replace masters, to the present one.
  std::string redis_command(const std::vector<std::string>& words) const {
    if (cluster_) return cluster_->command(losing_, words, {"-c"});
    return sentinels_ ? sentinels_->command(sentinels_->master(), words) : redis_->command(words);
  }
  [[nodiscard]] std::string config_value() const { return redis_command({"GET", "fcap:!config"}); }
  // All its data is gone, and so are its clients' connections.
  void begin_empty() {
    if (sentinels_) {
      redis_command({"FLUSHALL"});
      redis_command({"CLIENT", "KILL", "TYPE", "normal"});
      return;
    }
    if (cluster_) {
      cluster_->kill(losing_);
      cluster_->start(losing_);
      return;
    }
    redis_->kill();
    redis_->start();
  }

  void set_config(const std::string& brokers, int session_ms = 6'000) {
    config_ = (files_.path() / "updater.json").string();
    std::ofstream(config_) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "dead_letter_topic": "{}",
             "group_id": "{}", "properties": {{"session.timeout.ms": "{}"}}}},
            "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}},
            "pipeline": {{"gap_messages_min": 100}}}})",
        brokers, topic_, dead_letters(), topic_, session_ms, redis_url());
  }
  // For each partition, one user who is only asked about and one for whom hard calls are made have
  // seen "c" as often as the rule allows.
  void show_viewers() {
    const auto now =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    for (int partition = 0; partition < kPartitions; ++partition) {
      for (const std::string& user : {viewer_of(partition), buyer_of(partition)}) {
        for (const char* id : {"e1", "e2"}) {
          const testing::MadeEvent event{
              .user_id = user, .campaign_id = "c", .event_id = id, .time = now};
          producer_->send(topic_, user, event.json(), partition);
          expected_.add(event);
        }
      }
    }
  }
  // In a cluster all of them are users of the shard that is to lose its data.
  [[nodiscard]] std::string user(std::string_view role, int number) const {
    if (!cluster_) return fmt::format("{}-{}", role, number);
    constexpr std::string_view kRoles = "nobody viewer buyer";
    const std::size_t at = kRoles.find(role) + static_cast<std::size_t>(number);
    return RedisCluster::users_in(RedisCluster::slots_of(losing_), at + 1).back();
  }
  [[nodiscard]] std::string viewer_of(int partition) const { return user("viewer", partition); }
  [[nodiscard]] std::string buyer_of(int partition) const { return user("buyer", partition); }

  // What all viewers were answered.
  struct Verdicts {
    bool answered = true;
    bool capped = true;
    bool said = true;  // that they are capped, or that this is not known
  };
  Verdicts of_viewers() {
    Verdicts all;
    for (int partition = 0; partition < kPartitions; ++partition) {
      const Candidate candidates[] = {{"c"}};
      const CheckResult result = checker_->check(viewer_of(partition), candidates);
      all.answered =
          all.answered && (result.reason == Reason::kPassed || result.reason == Reason::kCapped);
      for (const Verdict& verdict : result.verdicts) {
        all.capped = all.capped && !verdict.allowed;
        all.said = all.said && (!verdict.allowed || !verdict.complete);
      }
    }
    return all;
  }
  // How many hard calls are granted to buyers, who all have had theirs.
  int granted() {
    int granted = 0;
    for (int partition = 0; partition < kPartitions; ++partition) {
      const std::string id = fmt::format("reserved-{}", ++reserved_);
      const HardResult result =
          checker_->hard({HardCall::kReserve, {buyer_of(partition), {"c"}, id}});
      if (result.reason == Reason::kDone) ++granted;
    }
    return granted;
  }
  // From when the Checker has noticed the loss until everything is there again, no verdict is both
  // allowed and complete, and no hard call is granted.
  void expect_told(const std::string& logs) {
    int granted_before = 0;
    const auto noticed = [&] {
      if (checker_says_complete() == false) return true;
      granted_before += granted();
      return false;
    };
    ASSERT_TRUE(wait_until(noticed, kPatience)) << logs;
    std::size_t looks = 0;
    const auto restored = [&] {
      const Verdicts now = of_viewers();
      if (now.answered) {
        ++looks;
        EXPECT_TRUE(now.said) << config_value();
        EXPECT_EQ(granted(), 0) << config_value();
      }
      return now.answered && now.capped && checker_says_complete() == true;
    };
    EXPECT_TRUE(wait_until(restored, kPatience)) << config_value();
    EXPECT_GT(looks, 1U);
    std::cout << granted_before << " hard calls were granted before the loss was noticed, of "
              << kPartitions << " users; looks after that: " << looks << "\n";
  }
  void expect_viewers_capped(Process& daemon) {
    const auto capped = [&] { return of_viewers().capped && checker_says_complete() == true; };
    EXPECT_TRUE(wait_until(capped, kPatience)) << daemon.errors();
  }

  [[nodiscard]] std::string dead_letters() const { return topic_ + ".later"; }
  std::unique_ptr<Process> start_daemon() {
    return std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config_});
  }
  void expect_counted(Process& daemon) {
    producer_->flush();
    auto store = make_redis_store(parse_redis_url(redis_url()).value());
    ASSERT_TRUE(store.ok()) << store.status().text();
    EXPECT_TRUE(wait_until([&] { return expected_.compare(*store.value()).none(); }, kPatience))
        << daemon.errors();
  }

  [[nodiscard]] redis::ConfigRecord::MissingBefore stated() const {
    const auto record = redis::parse_config(config_value());
    if (!record.ok()) return {};
    return record.value().missing_before;
  }
  // A user who has seen nothing is asked about, so that nothing but what is missing can matter.
  // Empty: the check was not answered from Redis, so it says nothing.
  std::optional<bool> checker_says_complete() {
    const Candidate candidates[] = {{"c"}};
    const CheckResult result = checker_->check(user("nobody", 0), candidates);
    EXPECT_EQ(result.verdicts.size(), 1U);
    if (result.reason != Reason::kPassed) return std::nullopt;
    return result.verdicts.at(0).complete;
  }
  // Everything that can be read again has been, and something else is missing.
  void expect_missing_for_good() {
    const std::string name = redis::missing_before_name(topic_, topic_);
    const auto only_expired = [&] {
      const auto missing = stated();
      return missing.contains(name) && missing.at(name).size() == 1 &&
             missing.at(name).contains("expired");
    };
    EXPECT_TRUE(wait_until(only_expired, kPatience)) << redis_->command({"GET", "fcap:!config"});
    EXPECT_TRUE(wait_until([&] { return checker_says_complete() == false; }, kPatience));
    EXPECT_EQ(
        checker_->hard({HardCall::kReserve, {"viewer", {"c"}, fmt::format("last-{}", ++reserved_)}})
            .reason,
        Reason::kIncomplete);
  }
  [[nodiscard]] json explained(std::string* text = nullptr) const {
    std::vector<std::string> command{FCAP_CLI_BINARY, "explain",   "nobody",  "c",
                                     "--redis",       redis_url(), "--rules", rules_};
    if (text != nullptr) *text = testing::run(command).output;
    command.emplace_back("--json");
    const testing::Finished finished = testing::run(command);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    return json::parse(finished.output, nullptr, false);
  }

  // At most one of these is there; else Redis is one server.
  std::unique_ptr<testing::RedisSentinels> sentinels_;
  std::unique_ptr<RedisCluster> cluster_;
  int losing_ = 0;  // the shard of the cluster that is to lose its data
  testing::TemporaryDirectory files_;
  std::string config_;
  std::string rules_;
  std::unique_ptr<Checker> checker_;
  int reserved_ = 0;
};

// The gap stays open because a letter of it has nowhere to go: an event of a user whose key is of
// another type, while there is no dead-letter topic.
TEST_F(GapAnswers, ClaimNoCompletenessUntilTheGapIsClosedWhoeverCrashesMeanwhile) {
  produce(2'000);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const testing::MadeEvent stranger{
      .user_id = "stranger", .campaign_id = "c", .event_id = "e", .time = now};
  producer_->send(topic_, stranger.user_id, stranger.json(), kStrangersPartition);
  produce(2'000);
  auto daemon = start_daemon();
  expect_counted(*daemon);
  EXPECT_TRUE(wait_until([&] { return committed() == 4'001; }, kPatience)) << daemon->errors();
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == true; }, kPatience));
  EXPECT_TRUE(explained()["verdicts"][0]["complete"].get<bool>());

  const std::string lost = redis_->command(
      {"EVAL", "redis.call('FLUSHALL') redis.call('HSET', KEYS[1], 'a', '1') return 'lost'", "1",
       "fcap:{stranger}"});
  ASSERT_EQ(lost, "lost");
  expect_counted(*daemon);
  const std::string name = redis::missing_before_name(topic_, topic_);
  const std::string partition = std::to_string(kStrangersPartition);
  const auto only_strangers = [&] {
    const auto missing = stated();
    return missing.contains(name) && missing.at(name).size() == 1 &&
           missing.at(name).contains(partition);
  };
  EXPECT_TRUE(wait_until(only_strangers, kPatience)) << config_value() << daemon->errors();
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == false; }, kPatience));
  EXPECT_TRUE(checker_->health().store.missing_before.has_value());
  std::string text;
  const json while_open = explained(&text);
  EXPECT_FALSE(while_open["verdicts"][0]["complete"].get<bool>()) << while_open;
  EXPECT_TRUE(while_open.contains("missing_before")) << while_open;
  EXPECT_NE(text.find("is rereading lost events"), std::string::npos) << text;

  daemon->kill();
  EXPECT_EQ(checker_says_complete(), false);
  daemon = start_daemon();
  produce(100);
  expect_counted(*daemon);
  EXPECT_TRUE(only_strangers()) << config_value();
  EXPECT_EQ(checker_says_complete(), false);

  kafka->create_topic(dead_letters(), 1);
  EXPECT_TRUE(wait_until([&] { return stated().empty(); }, kPatience))
      << config_value() << daemon->errors();
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == true; }, kPatience));
  EXPECT_TRUE(explained()["verdicts"][0]["complete"].get<bool>());
}

class LossAnswers : public GapAnswers, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string_view topology = GetParam();
    if (!testing::RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    if (topology == "Sentinels") sentinels_ = std::make_unique<testing::RedisSentinels>();
    if (topology.starts_with("Cluster")) {
      cluster_ = std::make_unique<RedisCluster>();
      cluster_->set_node_timeout(std::chrono::minutes{1});  // nobody replaces the empty master
      losing_ = cluster_->owner(redis::slot_of("fcap:!config"));
      if (topology != "ClusterWithoutConfig") losing_ = (losing_ + 1) % RedisCluster::kShards;
    }
    GapAnswers::SetUp();
  }
};

// The group gives the partitions of a member that was killed to another one only after its session.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisHasNoUpdaterWithPartitions) {
  show_viewers();
  produce(1'000);
  auto daemon = start_daemon();
  expect_counted(*daemon);
  expect_viewers_capped(*daemon);
  daemon->kill();
  begin_empty();
  daemon = start_daemon();
  expect_told("the updater was killed, and Redis begins empty");
}

// A Checker that keeps its connection looks every 10 s, and so before the session ends.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisLacksTheEventsOfAMemberThatIsGone) {
  set_config(kafka->brokers(), 15'000);
  show_viewers();
  produce(1'000);
  const auto stays = start_daemon();
  expect_counted(*stays);
  auto goes = start_daemon();
  const auto shared = [&] { return goes->errors().find("reading from") != std::string::npos; };
  EXPECT_TRUE(wait_until(shared, kPatience)) << goes->errors();
  expect_viewers_capped(*stays);
  goes->kill();
  redis_command({"FLUSHALL"});
  expect_told(stays->errors());
}

// What is known before Kafka can be asked has to do.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisWaitsForKafka) {
  show_viewers();
  auto daemon = start_daemon();
  expect_counted(*daemon);
  expect_viewers_capped(*daemon);
  daemon->kill();
  begin_empty();
  set_config("127.0.0.1:1");
  daemon = start_daemon();
  ASSERT_TRUE(wait_until([&] { return checker_says_complete() == false; }, kPatience))
      << config_value() << daemon->errors();
  const auto stated_for_all = [&] {
    const auto missing = stated();
    const auto topic = missing.find(redis::missing_before_name(topic_, topic_));
    return topic != missing.end() && topic->second.contains("*");
  };
  EXPECT_TRUE(wait_until(stated_for_all, kPatience)) << config_value() << daemon->errors();
  daemon->kill();
  set_config(kafka->brokers());
  daemon = start_daemon();
  expect_told(daemon->errors());
}

INSTANTIATE_TEST_SUITE_P(Behind, LossAnswers,
                         ::testing::Values("OneAddress", "Sentinels", "Cluster",
                                           "ClusterWithoutConfig"),
                         [](const auto& topology) { return std::string(topology.param); });

TEST_F(GapAnswers, NothingIsCompleteWhileKafkaCannotBeReached) {
  set_config("127.0.0.1:1");
  const auto daemon = start_daemon();
  const std::string name = redis::missing_before_name(topic_, topic_);
  const auto says_all = [&] {
    const auto missing = stated();
    return missing.contains(name) && missing.at(name).contains("*");
  };
  EXPECT_TRUE(wait_until(says_all, kPatience)) << daemon->errors();
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == false; }, kPatience));
  const auto refused = [&] {
    return checker_->hard({HardCall::kReserve, {"viewer", {"c"}, "id"}}).reason ==
           Reason::kIncomplete;
  };
  EXPECT_TRUE(wait_until(refused, kPatience));
}

// The gaps are written into the marks, so that they are open for certain while messages expire.
TEST_F(GapAnswers, MessagesThatExpireInAnOpenGapAreMissingForGood) {
  produce(2'000);
  auto daemon = start_daemon();
  expect_counted(*daemon);
  EXPECT_TRUE(wait_until([&] { return stated().empty(); }, kPatience)) << daemon->errors();
  daemon->send_signal(SIGTERM);
  EXPECT_EQ(daemon->wait(), 0) << daemon->errors();
  for (int partition = 0; partition < kPartitions; ++partition) {
    const std::string key = updater::mark_key("fcap", topic_, topic_, partition);
    auto mark = updater::decode_mark(redis_->command({"GET", key}));
    ASSERT_TRUE(mark);
    mark->gaps = {{0, mark->position}};
    ASSERT_EQ(redis_->command({"SET", key, updater::encode_mark(*mark)}), "OK");
  }
  kafka->delete_records(topic_, kPartitions);
  produce(100);
  daemon = start_daemon();
  expect_missing_for_good();
  EXPECT_NE(daemon->errors().find("messages that Redis lacks have expired in Kafka"),
            std::string::npos)
      << daemon->errors();
  EXPECT_EQ(daemon->errors().find("nothing is missing"), std::string::npos) << daemon->errors();
  daemon->kill();
  daemon = start_daemon();
  produce(100);
  expect_counted(*daemon);
  expect_missing_for_good();
}

TEST_F(GapAnswers, MessagesThatExpiredBeforeALossAreMissingForGoodAndNotAtAFirstStart) {
  produce(2'000);
  producer_->flush();
  kafka->delete_records(topic_, kPartitions);
  expected_ = {};
  produce(2'000);
  auto daemon = start_daemon();
  expect_counted(*daemon);
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == true; }, kPatience));
  EXPECT_TRUE(stated().empty());
  redis_->command({"FLUSHALL"});
  expect_counted(*daemon);
  expect_missing_for_good();
  EXPECT_NE(daemon->errors().find("Kafka no longer has the messages before offset"),
            std::string::npos)
      << daemon->errors();
}

}  // namespace gap_answers_path_test
}  // namespace fcap
