// The write path where a server refuses one thing and takes everything else.
#include <random>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace refusals_kafka_test {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterRefusals : public testing::UpdaterPipeline {
 protected:
  void use_account(const std::vector<std::string>& rules) {
    redis_user_ = "writer";
    std::vector<std::string> words = {"ACL", "SETUSER", redis_user_, "on", ">" + redis_user_, "~*"};
    words.insert(words.end(), rules.begin(), rules.end());
    ASSERT_EQ(redis_->command(words), "OK");
  }
  bool says(const RunningUpdater& updater, const std::string& text) {
    return wait_until([&] { return updater.not_ready().find(text) != std::string::npos; },
                      kPatience);
  }
  // Until Redis has refused a command so often once more: what was tried again has had its effect.
  void expect_refused_again(const std::string& command, long long more) const {
    const auto before = command_count(command, "rejected_calls");
    EXPECT_TRUE(wait_until(
        [&] { return command_count(command, "rejected_calls") >= before + more; }, kPatience))
        << redis_->command({"INFO", "commandstats"});
  }
};

TEST_F(UpdaterRefusals, AnAccountThatCannotWriteMarksReadsNothingAndSaysSo) {
  use_account({"+@all", "-@scripting"});
  produce(2'000);
  producer_->flush();
  auto updater = start_updater();
  EXPECT_TRUE(says(*updater, "NOPERM")) << updater->not_ready() << updater->log();
  expect_refused_again("evalsha", 2 * kPartitions);
  EXPECT_EQ(updater->metrics().messages.value(), 0U);
  EXPECT_EQ(redis_->number({"DBSIZE"}), 0);
  EXPECT_EQ(committed(), 0);
  EXPECT_NE(updater->log().find("NOPERM"), std::string::npos);
  EXPECT_NE(updater->not_ready(), "");
  redis_->command({"ACL", "SETUSER", redis_user_, "+@scripting"});
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience));
}

TEST_F(UpdaterRefusals, AnAccountThatCannotSetExpiriesAppendsOnceAndSaysSo) {
  use_account({"+@all", "-pexpireat"});
  produce(2'000);
  producer_->flush();
  auto updater = start_updater();
  EXPECT_TRUE(says(*updater, "NOPERM")) << updater->not_ready() << updater->log();
  const auto bytes = [this] {
    return redis_->command({"EVAL", R"(
        local bytes = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
          bytes = bytes + redis.call('STRLEN', key)
        end
        return bytes)",
                            "0"});
  };
  // What was under way may still come; then expiries alone are sent again.
  const auto stays = [&] {
    const std::string before = bytes();
    expect_refused_again("pexpireat", 3);
    return bytes() == before;
  };
  EXPECT_TRUE(wait_until(stays, kPatience)) << "a retry has appended again";
  EXPECT_NE(updater->log().find("NOPERM"), std::string::npos);
  redis_->command({"ACL", "SETUSER", redis_user_, "+pexpireat"});
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until(
      [&] { return expected_.wrong_expiries(*redis_, std::chrono::days{32}).empty(); }, kPatience));
}

TEST_F(UpdaterRefusals, AMissingDeadLetterTopicHoldsUpOnePartitionAndSaysSo) {
  dead_topic_ = topic_ + ".missing";
  auto updater = start_updater();
  producer_->send(topic_, "somebody", "no event at all", 0);
  producer_->flush();
  EXPECT_TRUE(says(*updater, dead_topic_)) << updater->not_ready() << updater->log();
  EXPECT_TRUE(says(*updater, "partition 0 waits")) << updater->not_ready();
  std::size_t sent = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto event = maker_.next();
    const int partition = i % kPartitions;
    producer_->send(topic_, event.user_id, event.json(), partition);
    expected_.add(event);
    if (partition != 0) ++sent;
  }
  producer_->flush();
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().events_written.value() >= sent; }, kPatience))
      << updater->log();
  EXPECT_EQ(updater->metrics().events_written.value(), sent) << "partition 0 is held up";
  kafka->create_topic(dead_topic_, 1);
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience));
  EXPECT_EQ(kafka->read_letters(dead_topic_).size(), 1U);
}

TEST_F(UpdaterRefusals, ADeadLetterThatIsTooLargeForItsTopicGoesAsAStub) {
  dead_topic_ = topic_ + ".small";
  kafka->create_topic(dead_topic_, 1, {"max.message.bytes=30000"});
  std::mt19937_64 random(test_seed(kSeed));
  std::string junk(200'000, 'x');
  for (char& c : junk) c = static_cast<char>(random());
  producer_->send(topic_, "somebody", junk, 1);
  produce(2'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return kafka->read_letters(dead_topic_).size() == 1; }, kPatience))
      << updater->log();
  const auto letter = kafka->read_letters(dead_topic_).at(0);
  EXPECT_EQ(letter.value, junk.substr(0, 16 * 1024));
  EXPECT_EQ(letter.headers.at("fcap.bytes"), "200000");
  EXPECT_EQ(letter.headers.at("fcap.partition"), "1");
  EXPECT_EQ(letter.headers.at("fcap.offset"), "0");
  EXPECT_TRUE(wait_until([&] { return committed() == 2'001; }, kPatience)) << updater->log();
}

TEST_F(UpdaterRefusals, ADeadLetterHasNoKeyAndNoValueWhereTheMessageHadNone) {
  producer_->send(topic_, {}, {}, 0);
  producer_->send(topic_, "", "", 0);
  producer_->flush();
  auto updater = start_updater();
  const std::string letters_topic = topic_ + ".dead";
  EXPECT_TRUE(wait_until([&] { return kafka->end(letters_topic, 0) == 2; }, kPatience))
      << updater->log();
  const auto letters = kafka->read_all(letters_topic, 1);
  ASSERT_EQ(letters.size(), 2U);
  const bool null_first = letters[0].headers.at("fcap.offset") == "0";
  const auto& null = letters[null_first ? 0 : 1];
  const auto& empty = letters[null_first ? 1 : 0];
  EXPECT_FALSE(null.has_key);
  EXPECT_FALSE(null.has_value);
  EXPECT_TRUE(empty.has_key);
  EXPECT_TRUE(empty.has_value);
}

TEST_F(UpdaterRefusals, AKeyOfAnotherTypeIsADeadLetterAndEverybodyElseIsCounted) {
  redis_->command({"HSET", "fcap:{stranger}", "a", "1"});
  const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  const testing::MadeEvent event{
      .user_id = "stranger", .campaign_id = "c", .event_id = "e", .time = now};
  producer_->send(topic_, event.user_id, event.json(), 2);
  produce(2'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return committed() == 2'001; }, kPatience)) << updater->log();
  const auto letters = kafka->read_all(topic_ + ".dead", 1);
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].key, "fcap:{stranger}");
  EXPECT_EQ(letters[0].headers.at("fcap.reason"), "refused");
  EXPECT_EQ(letters[0].headers.at("fcap.member").find("WRONGTYPE"), 0U);
  expect_said(*updater, "offset 0: Redis refuses");
  EXPECT_EQ(updater->log().find("stranger"), std::string::npos) << "no user is named";
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience));
}

// With more messages than the mark of the old log says were read.
TEST_F(UpdaterRefusals, ATopicThatWasRecreatedWhileItWasAwayIsReadFromItsBeginning) {
  produce(1'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  updater->stop();
  recreate_topic();
  produce(3'000);
  updater = start_updater();
  expect_all_counted(*updater);
  expect_said(*updater, "not the log that was read");
}

// Two processes with one group_instance_id, as from a copied configuration: the first is fenced,
// for good as far as librdkafka is concerned.
TEST_F(UpdaterRefusals, AFencedStaticMemberEndsWithItsReason) {
  group_instance_id_ = "one";
  produce(1'000);
  auto first = start_updater();
  expect_all_counted(*first);
  auto second = start_updater();
  EXPECT_TRUE(wait_until([&] { return first->ended() || second->ended(); }, kPatience))
      << first->log();
  const RunningUpdater& fenced = first->ended() ? *first : *second;
  EXPECT_NE(fenced.log().find("fenced"), std::string::npos) << fenced.log();
}

TEST_F(UpdaterRefusals, APartitionThatCannotBeReadIsNotReady) {
  updater::UpdaterOptions options;
  options.consumer.offset_reset = "error";
  produce(3'000);
  auto updater = start_updater(options);
  expect_all_counted(*updater);
  updater->stop();
  produce(3'000);
  producer_->flush();
  kafka->delete_records(topic_, kPartitions);
  updater = start_updater(options);
  EXPECT_TRUE(says(*updater, "partition")) << updater->log();
  EXPECT_TRUE(wait_until(
      [&] { return updater->metrics().unreadable_partitions.value() == kPartitions; }, kPatience))
      << updater->not_ready();
}

}  // namespace refusals_kafka_test
}  // namespace fcap
