// The daemon, with compaction, on machines whose clocks are wrong: what still counts is written,
// kept, and read again after a loss.
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "support/store_calls.h"
#include "support/updater_pipeline.h"
#include "test_paths.h"

namespace fcap {
namespace clocks_path_test {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::MadeEvent;
using testing::Process;
using testing::wait_until;

class UpdaterClocks : public testing::UpdaterPipeline,
                      public ::testing::WithParamInterface<milliseconds> {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    topic_ += ".any";
    // By itself Kafka refuses messages from more than an hour ahead.
    kafka->create_topic(topic_, kPartitions, {"message.timestamp.after.max.ms=4000000000000"});
    kafka->create_topic(topic_ + ".dead", 1);
    RedisOptions options;
    options.addresses = {redis_->address()};
    auto made = make_redis_store(options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
  }

  std::unique_ptr<Process> start_daemon(milliseconds clock_ahead) {
    const std::string config = (files_.path() / "updater.json").string();
    std::ofstream(config) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "dead_letter_topic": "{}.dead",
             "group_id": "{}"}},
            "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}},
            "compaction": {{"quiet_after": "1s"}}}})",
        kafka->brokers(), topic_, topic_, topic_, redis_->address());
    return std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config},
        Process::Options{
            .environment = {"LD_PRELOAD=" FCAP_SHIFTED_CLOCK,
                            fmt::format("FCAP_PRELOADED_CLOCK_AHEAD_MS={}", clock_ahead.count())},
            .input = {}});
  }

  MadeEvent next_event(milliseconds clock_ahead) {
    constexpr int kSteps = 20;
    MadeEvent event = maker_.next();
    event.user_id += "-c";
    event.time += clock_ahead - days{made_++ % kSteps};
    return event;
  }
  // Up to twenty days old, by a producer whose clock is ahead by so much.
  void produce_history(std::size_t count, milliseconds clock_ahead) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = next_event(clock_ahead);
      const Instant now =
          std::chrono::floor<milliseconds>(std::chrono::system_clock::now()) + clock_ahead;
      producer_->send_at(now, topic_, event.user_id, event.json());
      expected_.add(event);
    }
    producer_->flush();
  }

  [[nodiscard]] bool all_compacted() const {
    testing::StoreCalls calls(*store_);
    std::istringstream keys(redis_->command({"KEYS", "fcap:{*"}));
    for (std::string key; std::getline(keys, key);) {
      const std::string record = calls.get(key).record;
      if (ledger::compacted_bytes(record) != record.size()) return false;
    }
    return true;
  }
  void expect_all_kept(Process& daemon) {
    const auto all_there = [this] { return expected_.compare(*store_).none(); };
    EXPECT_TRUE(wait_until(all_there, kPatience)) << daemon.errors();
    EXPECT_TRUE(wait_until([this] { return all_compacted(); }, kPatience)) << daemon.errors();
    const auto found = expected_.compare(*store_);
    EXPECT_EQ(found.missing, 0U) << daemon.errors();
    EXPECT_EQ(found.surplus, 0U);
    EXPECT_EQ(kafka->end_sum(topic_ + ".dead", 1), 0);
  }

  testing::TemporaryDirectory files_;
  std::unique_ptr<Store> store_;
  int made_ = 0;
};

// Without a trimming clock, compaction would take nothing for too old.
TEST_F(UpdaterClocks, WhatIsOlderThanTheRetentionLeavesARecordThatIsCompacted) {
  const MadeEvent event = next_event(milliseconds{0});
  const ledger::Entry old{.time = event.time - kDefaultRetention - days{1},
                          .campaign = ledger::id_hash(event.campaign_id),
                          .creative = 0,
                          .type = EventType::kImpression,
                          .fingerprint = ledger::fingerprint("long ago")};
  std::string record;
  ledger::append_entries({&old, 1}, record);
  std::string key;
  ledger::user_key("fcap", event.user_id, key);
  ASSERT_EQ(testing::StoreCalls(*store_).append(key, record, event.time + days{1}).code,
            StoreCode::kOk);
  producer_->send(topic_, event.user_id, event.json());
  producer_->flush();
  expected_.add(event);
  auto daemon = start_daemon(milliseconds{0});
  expect_all_kept(*daemon);
}

class OfTheUpdater : public UpdaterClocks {};

TEST_P(OfTheUpdater, ItLosesNothing) {
  produce_history(3'000, milliseconds{0});
  auto daemon = start_daemon(GetParam());
  expect_all_kept(*daemon);
  redis_->command({"FLUSHALL"});
  expect_all_kept(*daemon);
  daemon->send_signal(SIGTERM);
  EXPECT_EQ(daemon->wait(), 0) << daemon->errors();
  // And it goes on where it was, with what came meanwhile.
  produce_history(300, milliseconds{0});
  daemon = start_daemon(GetParam());
  expect_all_kept(*daemon);
}

INSTANTIATE_TEST_SUITE_P(Ahead, OfTheUpdater, ::testing::Values(minutes{10}, days{3}, days{366}));
INSTANTIATE_TEST_SUITE_P(Behind, OfTheUpdater,
                         ::testing::Values(-minutes{10}, -days{3}, -days{366}));

class OfAnUpdaterFarBehind : public UpdaterClocks {};

TEST_P(OfAnUpdaterFarBehind, ItsConfigurationStaysInRedis) {
  auto daemon = start_daemon(GetParam());
  const auto is_there = [this] { return redis_->number({"EXISTS", "fcap:!config"}) == 1; };
  EXPECT_TRUE(wait_until(is_there, kPatience)) << daemon->errors();
}

INSTANTIATE_TEST_SUITE_P(Behind, OfAnUpdaterFarBehind, ::testing::Values(-days{900}));

// Everybody's clock but that of Redis' host is shifted, which is the same as the reverse.
class OfRedis : public UpdaterClocks {};

TEST_P(OfRedis, NothingIsLostThatItDoesNotExpire) {
  produce_history(3'000, -GetParam());
  auto daemon = start_daemon(-GetParam());
  expect_all_kept(*daemon);
  redis_->command({"FLUSHALL"});
  expect_all_kept(*daemon);
}

// Ahead by more than what is left of a record's life it expires the record: guarantees.md.
INSTANTIATE_TEST_SUITE_P(Ahead, OfRedis, ::testing::Values(minutes{10}, days{3}));
INSTANTIATE_TEST_SUITE_P(Behind, OfRedis, ::testing::Values(-days{3}, -days{366}));

class OfAProducer : public UpdaterClocks {};

// Its own events are judged by their times; nobody else's suffer.
TEST_P(OfAProducer, TheOthersEventsAreCountedAndItsOwnAreNotLostSilently) {
  constexpr std::size_t kStrange = 300;
  const bool in_future = GetParam() > minutes{5};
  produce_history(1'000, milliseconds{0});
  for (std::size_t i = 0; i < kStrange; ++i) {
    MadeEvent event = maker_.next();
    event.time = std::chrono::floor<milliseconds>(std::chrono::system_clock::now()) + GetParam();
    producer_->send_at(event.time, topic_, event.user_id, event.json());
    if (std::chrono::abs(GetParam()) < days{30} && !in_future) expected_.add(event);
  }
  produce_history(1'000, milliseconds{0});
  auto daemon = start_daemon(milliseconds{0});
  const auto all_there = [this] { return expected_.compare(*store_).missing == 0; };
  EXPECT_TRUE(wait_until(all_there, kPatience)) << daemon->errors();
  redis_->command({"FLUSHALL"});
  EXPECT_TRUE(wait_until(all_there, kPatience)) << daemon->errors();
  // What is not counted is either out of every window's reach, or set aside with its reason.
  const auto set_aside = [this] { return kafka->end_sum(topic_ + ".dead", 1) > 0; };
  EXPECT_EQ(in_future ? wait_until(set_aside, kPatience) : set_aside(), in_future);
}

INSTANTIATE_TEST_SUITE_P(Ahead, OfAProducer, ::testing::Values(minutes{10}, days{366}));
INSTANTIATE_TEST_SUITE_P(Behind, OfAProducer, ::testing::Values(-days{3}, -days{366}));

}  // namespace clocks_path_test
}  // namespace fcap
