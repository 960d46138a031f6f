// `fcap-updater sweep` as the timer runs it, on a real Redis: shorter records, equal answers.
#include <csignal>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcap/redis_options.h>

#include "support/append_event.h"
#include "support/expected_ledgers.h"
#include "support/process.h"
#include "support/redis_test.h"
#include "test_paths.h"

namespace fcap {
namespace sweep_path_test {

using nlohmann::json;
using testing::EventMaker;
using testing::ExpectedLedgers;
using testing::Finished;
using testing::MadeEvent;
using testing::Process;

constexpr std::chrono::days kRetention{32};  // the default
constexpr std::size_t kUsers = 500;

class UpdaterSweep : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    store_ = testing::connected_store(*redis_);
  }

  // An entry of its own in the user's record, as the updater appends it.
  void append(const MadeEvent& event) {
    Instant& newest = newest_[event.user_id];
    newest = std::max(newest, event.time);
    testing::append_event(*store_, event, newest + kRetention);
  }

  void append_some(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      append(event);
      expected_.add(event);
    }
  }

  [[nodiscard]] std::vector<std::string> command(const std::string& keys_per_second) const {
    return {FCAP_UPDATER_BINARY,
            "sweep",
            "--json",
            "--quiet",
            "--redis.addresses",
            redis_->address(),
            "--compaction.sweep_keys_per_second",
            keys_per_second};
  }
  json sweep() {
    const Finished finished = testing::run(command("1000000"));
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    json summary = json::parse(finished.output, nullptr, false);
    EXPECT_TRUE(summary["complete"] == true) << finished.output;
    return summary;
  }

  void expect_nothing_lost() {
    const auto difference = expected_.compare(*store_);
    EXPECT_EQ(difference.missing, 0U);
    EXPECT_EQ(difference.surplus, 0U);
    EXPECT_EQ(difference.unreadable, 0U);
    EXPECT_EQ(expected_.wrong_expiries(*redis_, kRetention), "");
  }

  std::unique_ptr<Store> store_;
  EventMaker maker_{20'240'610, kUsers};
  ExpectedLedgers expected_;
  std::map<std::string, Instant> newest_;
};

TEST_F(UpdaterSweep, RecordsBecomeShorterAndTheirAnswersStay) {
  append_some(10'000);
  // A month and more ago: past the retention.
  MadeEvent old = maker_.next();
  old.user_id = "user-1";
  old.time -= kRetention + std::chrono::days{1};
  append(old);
  ASSERT_EQ(redis_->command({"PERSIST", "fcap:{user-1}"}), "1");
  const json first = sweep();
  EXPECT_EQ(first["records"], kUsers);
  EXPECT_EQ(first["compacted"], kUsers);
  EXPECT_EQ(first["expiries_repaired"], 1);
  EXPECT_LT(first["bytes_after"], first["bytes_before"].get<std::uint64_t>() * 2 / 3);
  EXPECT_EQ(redis_->number({"STRLEN", "fcap:{user-2}"}) > 0, true);
  expect_nothing_lost();

  const json second = sweep();
  EXPECT_EQ(second["compacted"], 0);
  EXPECT_EQ(second["bytes_before"], first["bytes_after"]);
  EXPECT_EQ(second["bytes_after"], first["bytes_after"]);
}

TEST_F(UpdaterSweep, WhatIsNoneOfItsBusinessStaysAsItIs) {
  append_some(1'000);
  redis_->command({"SET", "fcap:{unreadable}", "these bytes are no record", "PX", "3600000"});
  redis_->command({"SET", "fcap:!mark:{0}:group:topic:0", "4 42", "PX", "3600000"});
  redis_->command({"SET", "other:{user-1}", "another program's", "PX", "3600000"});
  const json summary = sweep();
  EXPECT_EQ(summary["undecodable"], 1);
  EXPECT_EQ(redis_->command({"GET", "fcap:{unreadable}"}), "these bytes are no record");
  EXPECT_EQ(redis_->command({"GET", "fcap:!mark:{0}:group:topic:0"}), "4 42");
  EXPECT_EQ(redis_->command({"GET", "other:{user-1}"}), "another program's");
  expect_nothing_lost();
}

TEST_F(UpdaterSweep, WhatIsWrittenMeanwhileIsNotLost) {
  append_some(5'000);
  std::jthread writer([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) append_some(100);
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sweep()["failed"], 0);
  }
  writer.request_stop();
  writer.join();
  expect_nothing_lost();
}

TEST_F(UpdaterSweep, AFullRedisIsCompactedAllTheSame) {
  append_some(20'000);
  const std::string memory = redis_->command({"INFO", "memory"});
  const auto used = std::stoll(memory.substr(memory.find("used_memory:") + 12));
  ASSERT_EQ(redis_->command({"CONFIG", "SET", "maxmemory", std::to_string(used - 200'000)}), "OK");
  ASSERT_NE(redis_->command({"SET", "more", "x"}), "OK");
  const json summary = sweep();
  EXPECT_EQ(summary["failed"], 0);
  EXPECT_EQ(summary["compacted"], kUsers);
  EXPECT_LT(summary["bytes_after"], summary["bytes_before"]);
  expect_nothing_lost();
}

TEST_F(UpdaterSweep, RecordsThatItMayNotReplaceMakeItFail) {
  append_some(10'000);
  ASSERT_EQ(redis_->command({"ACL", "SETUSER", "default", "-set"}), "OK");
  const Finished finished = testing::run(command("1000000"));
  EXPECT_EQ(finished.exit_code, 1) << finished.output;
  EXPECT_GT(json::parse(finished.output, nullptr, false)["failed"], 0) << finished.output;
  EXPECT_NE(finished.errors.find("could not be compacted"), std::string::npos) << finished.errors;
  expect_nothing_lost();
}

TEST_F(UpdaterSweep, StoppedItSaysThatItIsNotComplete) {
  append_some(1'000);
  Process sweeping(command("1"));
  // Once it scans, it has long been listening for signals.
  const auto scans = [this] {
    return redis_->command({"INFO", "commandstats"}).find("cmdstat_scan:") != std::string::npos;
  };
  EXPECT_TRUE(testing::wait_until(scans)) << sweeping.errors();
  EXPECT_TRUE(sweeping.running()) << "it has minutes to go: " << sweeping.errors();
  sweeping.send_signal(SIGTERM);
  EXPECT_TRUE(sweeping.wait_for(std::chrono::seconds{60})) << sweeping.errors();
  EXPECT_EQ(sweeping.exit_code(), 3) << sweeping.errors();
  EXPECT_EQ(json::parse(sweeping.output(), nullptr, false)["complete"], false) << sweeping.output();
  expect_nothing_lost();
}

}  // namespace sweep_path_test
}  // namespace fcap
