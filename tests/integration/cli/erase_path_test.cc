// A data-protection request through the real path: what `fcap erase` makes forgotten stays
// forgotten, also when the whole topic is read again.
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/whole_path_test.h"

namespace fcap {
namespace erase_path_test {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::Finished;
using ::testing::HasSubstr;
using testing::wait_until;
using testing::WholePath;

class Erase : public testing::WholePathTest {
 protected:
  void SetUp() override {
    WholePathTest::SetUp();
    if (IsSkipped()) return;
    user_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  void record(const std::string& campaign, const std::string& id, Instant time) {
    servers->produce({user_, campaign, id, time});
    servers->producer.flush();
  }

  // `fcap erase` with these words, at this path's broker.
  static Finished erase(std::vector<std::string> words) {
    words.insert(words.begin(), "erase");
    words.insert(words.end(), {"--brokers", servers->kafka.brokers(), "--topic", servers->topic,
                               "--timeout", "30s"});
    return servers->fcap(words);
  }

  [[nodiscard]] json show() const {
    const Finished finished = servers->fcap({"show", user_, "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    return json::parse(finished.output);
  }

  // Waits until the user's record has so many entries, and is erased up to this instant.
  [[nodiscard]] bool comes_to(std::size_t entries, const json& erased_until) const {
    return wait_until(
        [&] {
          const json shown = show();
          return shown["entry_count"] == entries && shown["erased_before"] == erased_until;
        },
        std::chrono::seconds{60});
  }

  std::string user_;
  const Instant now_ = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
};

TEST_F(Erase, AListIsErasedUserByUser) {
  record("c1", "i1", now_ - std::chrono::minutes{2});
  ASSERT_TRUE(comes_to(1, nullptr));
  const testing::TemporaryDirectory directory;
  const std::string list = directory.path() / "users";
  std::ofstream(list) << user_ << "\r\nsomebody-else\n";
  const Finished erased = erase({"--input", list, "--yes", "--json"});
  ASSERT_EQ(erased.exit_code, 0) << erased.errors;
  const json first = json::parse(erased.output.substr(0, erased.output.find('\n')));
  EXPECT_EQ(first["user"], user_);
  EXPECT_THAT(erased.output, ::testing::HasSubstr("\"user\":\"somebody-else\""));
  EXPECT_TRUE(comes_to(0, first["erased_until"]));
}

TEST_F(Erase, StaysErasedThroughAReplayOfTheWholeTopicAndLaterEventsCount) {
  record("c1", "i1", now_ - hours{3});
  record("c1", "i2", now_ - hours{2});
  record("c2", "i3", now_ - minutes{5});
  ASSERT_TRUE(comes_to(3, nullptr)) << show();

  const Finished finished = erase({user_, "--yes", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.errors;
  const json audit = json::parse(finished.output);
  EXPECT_EQ(audit["user"], user_);
  EXPECT_EQ(audit["topic"], servers->topic);
  EXPECT_GE(audit["erased_until"], to_ms(now_));
  const std::int64_t until = audit["erased_until"];
  ASSERT_TRUE(comes_to(0, until)) << show();
  EXPECT_THAT(servers->fcap({"show", user_}).output, HasSubstr("erased: everything up to"));
  const std::string said =
      "partition " + audit["partition"].dump() + ", offset " + audit["offset"].dump() + " requests";
  EXPECT_TRUE(wait_until([&] { return servers->updater_log().find(said) != std::string::npos; }))
      << servers->updater_log();
  EXPECT_EQ(servers->updater_log().find(user_), std::string::npos) << "no log names who is erased";

  // Another one from before it, which comes late, and one from after it.
  record("c1", "i4", now_ - hours{1});
  record("c1", "i5", instant_from_ms(until + 1));
  ASSERT_TRUE(comes_to(1, until)) << show();
  const Finished replayed = servers->replay({"--json"});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.errors;
  EXPECT_TRUE(comes_to(1, until)) << show();

  // Into a Redis that has lost everything, the mark included.
  servers->redis.command({"DEL", "fcap:{" + user_ + "}"});
  const Finished refilled = servers->replay({"--json"});
  ASSERT_EQ(refilled.exit_code, 0) << refilled.errors;
  EXPECT_TRUE(comes_to(1, until)) << show();
  EXPECT_EQ(show()["campaigns"][0]["entries"][0]["time"], until + 1);
}

TEST_F(Erase, UpToAnInstantLeavesWhatCameLater) {
  record("c1", "i1", now_ - hours{3});
  record("c1", "i2", now_ - hours{1});
  record("c1", "i3", now_ - hours{1} + milliseconds{1});
  ASSERT_TRUE(comes_to(3, nullptr)) << show();
  const Finished finished = erase({user_, "--yes", "--at", std::to_string(to_ms(now_ - hours{1}))});
  ASSERT_EQ(finished.exit_code, 0) << finished.errors;
  for (const std::string& part : {"user \"" + user_ + "\"", std::string("everything up to "),
                                  std::string("partition "), std::string("offset ")}) {
    EXPECT_THAT(finished.output, HasSubstr(part));
  }
  EXPECT_TRUE(comes_to(1, to_ms(now_ - hours{1}))) << show();
}

TEST_F(Erase, MessageIsKeyedByTheUserAndIsAnEvent) {
  const Finished finished = erase({user_, "--yes", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.errors;
  const json audit = json::parse(finished.output);
  bool found = false;
  for (const auto& message : servers->kafka.read_all(servers->topic, WholePath::kPartitions)) {
    if (message.partition != audit["partition"] || message.offset != audit["offset"]) continue;
    found = true;
    EXPECT_EQ(message.key, user_);
    EXPECT_EQ(
        json::parse(message.value),
        json({{"user_id", user_}, {"type", "erasure"}, {"timestamp", audit["erased_until"]}}));
  }
  EXPECT_TRUE(found);
}

TEST_F(Erase, WhatCannotBePublishedIsAnErrorThatNamesTheOption) {
  const std::int64_t before = servers->kafka.end_sum(servers->topic, WholePath::kPartitions);
  const Finished asked = erase({user_});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.errors, HasSubstr("--yes"));
  const std::string mistyped = "impresions." + servers->topic;
  const Finished no_topic = servers->fcap(
      {"erase", user_, "--yes", "--brokers", servers->kafka.brokers(), "--topic", mistyped});
  EXPECT_EQ(no_topic.exit_code, 1);
  EXPECT_THAT(no_topic.errors, HasSubstr("--topic"));
  // Nor did asking for it make the topic.
  EXPECT_EQ(servers
                ->fcap({"erase", user_, "--yes", "--brokers", servers->kafka.brokers(), "--topic",
                        mistyped})
                .exit_code,
            1);
  const Finished nobody =
      servers->fcap({"erase", user_, "--yes", "--brokers", "127.0.0.1:1", "--timeout", "5s"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("--brokers"));
  EXPECT_THAT(nobody.errors, HasSubstr("refused"));
  EXPECT_EQ(servers->kafka.end_sum(servers->topic, WholePath::kPartitions), before);
}

}  // namespace erase_path_test
}  // namespace fcap
