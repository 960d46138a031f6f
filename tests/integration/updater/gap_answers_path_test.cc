// What checks and hard calls say after a loss, while the daemon fills a gap, and when it has filled
// it.
#include <chrono>
#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "redis/config_record.h"
#include "support/gap_answers.h"
#include "updater/marks/mark_value.h"

namespace fcap {
namespace gap_answers_path_test {

using nlohmann::json;
using testing::GapAnswers;
using testing::wait_until;

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
  EXPECT_TRUE(wait_until([&] {
    return daemon->errors().find("messages that Redis lacks have expired in Kafka") !=
           std::string::npos;
  })) << daemon->errors();
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
  EXPECT_TRUE(wait_until([&] {
    return daemon->errors().find("Kafka no longer has the messages before offset") !=
           std::string::npos;
  })) << daemon->errors();
}

}  // namespace gap_answers_path_test
}  // namespace fcap
