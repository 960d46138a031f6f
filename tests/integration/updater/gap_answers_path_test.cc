// What checks say while the daemon fills a gap, and when it has filled it.
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcap/checker.h>

#include "redis/config_record.h"
#include "support/updater_pipeline.h"
#include "test_paths.h"

namespace fcap {
namespace gap_answers_path_test {

using nlohmann::json;
using testing::Process;
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
    config_ = (files_.path() / "updater.json").string();
    std::ofstream(config_) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "dead_letter_topic": "{}",
             "group_id": "{}", "properties": {{"session.timeout.ms": "6000"}}}},
            "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}},
            "pipeline": {{"gap_messages_min": 100}}}})",
        kafka->brokers(), topic_, dead_letters(), topic_, redis_->address());
    CheckerOptions options;
    options.redis.addresses = {redis_->address()};
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

  [[nodiscard]] std::string dead_letters() const { return topic_ + ".later"; }
  std::unique_ptr<Process> start_daemon() {
    return std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config_});
  }
  void expect_counted(Process& daemon) {
    producer_->flush();
    RedisOptions options;
    options.addresses = {redis_->address()};
    auto store = make_redis_store(options);
    ASSERT_TRUE(store.ok()) << store.status().text();
    EXPECT_TRUE(wait_until([&] { return expected_.compare(*store.value()).none(); }, kPatience))
        << daemon.errors();
  }

  [[nodiscard]] redis::ConfigRecord::MissingBefore stated() const {
    const auto record = redis::parse_config(redis_->command({"GET", "fcap:!config"}));
    if (!record.ok()) return {};
    return record.value().missing_before;
  }
  // Of a user who has seen nothing, so that nothing but what is missing can matter.
  // Empty: the check was not answered from Redis, so it says nothing.
  std::optional<bool> checker_says_complete() {
    const Candidate candidates[] = {{"c"}};
    const CheckResult result = checker_->check("nobody", candidates);
    EXPECT_EQ(result.verdicts.size(), 1U);
    if (result.reason != Reason::kPassed) return std::nullopt;
    return result.verdicts.at(0).complete;
  }
  [[nodiscard]] json explained(std::string* text = nullptr) const {
    std::vector<std::string> command{FCAP_CLI_BINARY, "explain",         "nobody",  "c",
                                     "--redis",       redis_->address(), "--rules", rules_};
    if (text != nullptr) *text = testing::run(command).output;
    command.emplace_back("--json");
    const testing::Finished finished = testing::run(command);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    return json::parse(finished.output, nullptr, false);
  }

  testing::TemporaryDirectory files_;
  std::string config_;
  std::string rules_;
  std::unique_ptr<Checker> checker_;
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
  EXPECT_EQ(checker_says_complete(), true);
  EXPECT_TRUE(wait_until(
      [&] {
        return redis_->number({"EXISTS", "fcap:!config"}) == 1;
      },
      kPatience));
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
  EXPECT_TRUE(wait_until(only_strangers, kPatience))
      << redis_->command({"GET", "fcap:!config"}) << daemon->errors();
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
  EXPECT_TRUE(only_strangers()) << redis_->command({"GET", "fcap:!config"});
  EXPECT_EQ(checker_says_complete(), false);

  kafka->create_topic(dead_letters(), 1);
  EXPECT_TRUE(wait_until([&] { return stated().empty(); }, kPatience))
      << redis_->command({"GET", "fcap:!config"}) << daemon->errors();
  EXPECT_TRUE(wait_until([&] { return checker_says_complete() == true; }, kPatience));
  EXPECT_TRUE(explained()["verdicts"][0]["complete"].get<bool>());
}

}  // namespace gap_answers_path_test
}  // namespace fcap
