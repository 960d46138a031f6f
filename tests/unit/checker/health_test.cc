#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fixtures.h"
#include "host_store.h"
#include "tests/support/thread_state.h"

namespace fcap::checker_test {
namespace health_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A store that says of itself what the test says.
class ToldStore final : public HostStore {
 public:
  [[nodiscard]] StoreHealth health() const override {
    const std::lock_guard lock(mutex_);
    return health_;
  }
  void expect_config(const ExpectedConfig& config) override { expected = config; }

  void say(const StoreHealth& health) {
    const std::lock_guard lock(mutex_);
    health_ = health;
  }

  ExpectedConfig expected;

 private:
  mutable std::mutex mutex_;
  StoreHealth health_;
};

class Health : public ::testing::Test {
 protected:
  Health() : store_(std::make_shared<ToldStore>()) {
    CheckerOptions options = patient_options();
    options.store = store_;
    options.key_prefix = "of-the-test";
    options.retention = 48h;
    options.null_user_ids = {"0"};
    Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok());
    checker_ = std::move(made).value();
  }

  std::shared_ptr<ToldStore> store_;
  std::unique_ptr<Checker> checker_;
};

TEST_F(Health, IsReadyWithRulesAndAStoreThatAnswers) {
  EXPECT_FALSE(checker_->health().ready);
  EXPECT_FALSE(checker_->wait_ready(1ms));
  EXPECT_THAT(checker_->health().problems, ElementsAre(HasSubstr("no rules")));
  checker_->set_rules(rule_set({sliding_rule("r1", "c1", 1)}, {}, 7));
  const CheckerHealth health = checker_->health();
  EXPECT_TRUE(health.ready);
  EXPECT_THAT(health.problems, IsEmpty());
  EXPECT_EQ(health.rule_set_version, 7U);
  EXPECT_EQ(health.rule_count, 1U);
  EXPECT_EQ(health.rules_source, "host");
  EXPECT_GE(health.rule_set_age, 0ms);
  EXPECT_TRUE(checker_->wait_ready(0ms));
}

TEST_F(Health, SaysWhatIsWrongWithTheStore) {
  checker_->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  StoreHealth gone;
  gone.connected = false;
  gone.last_error = "connection refused";
  store_->say(gone);
  EXPECT_FALSE(checker_->health().ready);
  EXPECT_THAT(checker_->health().problems, ElementsAre(HasSubstr("connection refused")));

  // It answers, but what it has is not, or not for long, what the updater writes.
  StoreHealth wrong;
  wrong.role = ServerRole::kReplica;
  wrong.replica_link_up = false;
  wrong.role_text = "replica of x";
  wrong.config_state = ConfigState::kDiffers;
  wrong.config_text = "retention: 32 days there, 2 days here";
  store_->say(wrong);
  EXPECT_TRUE(checker_->health().ready);
  EXPECT_THAT(checker_->health().problems,
              ElementsAre(HasSubstr("replica of x"), HasSubstr("32 days there")));

  StoreHealth no_time;
  no_time.clock_text = "TIME: NOPERM";
  store_->say(no_time);
  EXPECT_TRUE(checker_->health().ready);
  EXPECT_THAT(checker_->health().problems, ElementsAre(HasSubstr("TIME: NOPERM")));

  StoreHealth filling;
  filling.missing_before = instant_from_ms(1'700'000'000'000);
  store_->say(filling);
  EXPECT_TRUE(checker_->health().ready);
  EXPECT_THAT(checker_->health().problems, ElementsAre(HasSubstr("2023-11-14T22:13:20Z")));

  StoreHealth sentinel;
  sentinel.role = ServerRole::kSentinel;
  store_->say(sentinel);
  EXPECT_FALSE(checker_->health().ready);
}

TEST_F(Health, TellsTheStoreWhatItExpectsOfTheUpdater) {
  EXPECT_EQ(store_->expected.key_prefix, "of-the-test");
  EXPECT_EQ(store_->expected.retention, 48h);
  EXPECT_THAT(store_->expected.null_user_ids, ElementsAre("0"));
}

TEST_F(Health, IsWaitedFor) {
  std::thread host([&, waiting = ::gettid()] {
    EXPECT_TRUE(falls_asleep(waiting));
    checker_->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  });
  EXPECT_TRUE(checker_->wait_ready(30s));
  host.join();
}

// The natural way to say "however long it takes".
TEST_F(Health, IsWaitedForWithoutABound) {
  std::thread host([&, waiting = ::gettid()] {
    EXPECT_TRUE(falls_asleep(waiting));
    checker_->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  });
  EXPECT_TRUE(checker_->wait_ready(std::chrono::milliseconds::max()));
  host.join();
  checker_->set_rules(nullptr);
  EXPECT_FALSE(checker_->wait_ready(std::chrono::milliseconds::min()));
}

TEST(HealthTexts, WhatOthersSayIsOneLineWithoutControlCharacters) {
  const auto is_clean = [](const std::string& text) {
    return text.find_first_of("\n\x1b") == std::string::npos;
  };
  std::mutex mutex;
  std::vector<std::string> lines;
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ToldStore>();
  options.rules.snapshot_file = "/there is no\n\x1b[2Jsuch file";
  options.log = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(text);
  };
  const auto made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const CheckerHealth health = made.value()->health();
  EXPECT_THAT(health.rules_error, HasSubstr("such file"));
  EXPECT_TRUE(is_clean(health.rules_error)) << health.rules_error;
  for (const std::string& problem : health.problems) EXPECT_TRUE(is_clean(problem)) << problem;
  const std::lock_guard lock(mutex);
  EXPECT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_TRUE(is_clean(line)) << line;
}

TEST(CheckerStats, CountHowReadsEndAndHowLongTheyTake) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  const Candidate candidates[] = {{"c1"}};
  world.store->answer_at_once = StoreCode::kOk;
  for (int i = 0; i < 3; ++i) (void)world.checker->check("u", candidates);
  world.store->answer_at_once = StoreCode::kNotFound;
  (void)world.checker->first_allowed("u", candidates, 1);
  std::promise<void> answered;
  world.checker->check_async("u", candidates, {},
                             [&](const CheckResult&) { answered.set_value(); });
  answered.get_future().wait();
  world.store->answer_at_once = StoreCode::kServerError;
  const CheckRequest users[] = {{"u", candidates}};
  (void)world.checker->check_batch(users);
  const CheckerStats stats = world.checker->stats();
  EXPECT_EQ(stats.reads.found, 3U);
  EXPECT_EQ(stats.reads.missing, 2U);
  EXPECT_EQ(stats.reads.server_errors, 1U);
  const auto count = [](const LatencyHistogram& histogram) {
    std::uint64_t sum = 0;
    for (const std::uint64_t bucket : histogram.counts) sum += bucket;
    return sum;
  };
  EXPECT_GE(count(stats.latency.check), 1U);
  EXPECT_GE(count(stats.latency.store), 1U);
  EXPECT_LE(count(stats.latency.store), count(stats.latency.check));
  EXPECT_GT(stats.latency.check.sum.count(), 0);
}

TEST(CheckerStats, CountShutdownAndReentrantAnswers) {
  ScriptedChecker world;
  const Candidate candidates[] = {{"c1"}};
  std::promise<void> answered;
  world.checker->check_async("u", candidates, {}, [&](const CheckResult&) {
    EXPECT_EQ(world.checker->check("u", candidates).reason, Reason::kReentrant);
    answered.set_value();
  });
  answered.get_future().wait();
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kReentrant], 1U);
}

}  // namespace health_test
}  // namespace fcap::checker_test
