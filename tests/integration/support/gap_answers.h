#pragma once

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

namespace fcap::testing {

inline constexpr const char* kTwoADay = R"({"version": 1, "campaigns": [], "rules": [
  {"id": "two-a-day", "scope": "campaign", "target": "*", "event_type": "impression", "limit": 2,
   "window": {"kind": "sliding", "length": "24h"}}]})";

/// A Checker beside a daemon, and what it says while events are missing.
class GapAnswers : public UpdaterPipeline {
 protected:
  static constexpr int kStrangersPartition = 2;

  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    rules_ = (files_.path() / "rules.json").string();
    std::ofstream(rules_) << kTwoADay;
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
          const MadeEvent event{.user_id = user, .campaign_id = "c", .event_id = id, .time = now};
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
    const auto lost = std::chrono::steady_clock::now();
    int granted_before = 0;
    const auto noticed = [&] {
      if (checker_says_complete() == false) return true;
      granted_before += granted();
      return false;
    };
    ASSERT_TRUE(wait_until(noticed, kPatience)) << logs;
    const std::chrono::duration<double> unnoticed = std::chrono::steady_clock::now() - lost;
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
    std::cout << granted_before << " hard calls were granted before the loss was noticed, after "
              << unnoticed.count() << " s, of " << kPartitions
              << " users; looks after that: " << looks << "\n";
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
  [[nodiscard]] nlohmann::json explained(std::string* text = nullptr) const {
    std::vector<std::string> command{FCAP_CLI_BINARY, "explain",   "nobody",  "c",
                                     "--redis",       redis_url(), "--rules", rules_};
    if (text != nullptr) *text = run(command).output;
    command.emplace_back("--json");
    const Finished finished = run(command);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    return nlohmann::json::parse(finished.output, nullptr, false);
  }

  // At most one of these is there; else Redis is one server.
  std::unique_ptr<RedisSentinels> sentinels_;
  std::unique_ptr<RedisCluster> cluster_;
  int losing_ = 0;  // the shard of the cluster that is to lose its data
  TemporaryDirectory files_;
  std::string config_;
  std::string rules_;
  std::unique_ptr<Checker> checker_;
  int reserved_ = 0;
};

}  // namespace fcap::testing
