// Whom Sentinels that disagree are believed.
#include "redis/sentinels.h"

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "redis/sentinel_answers.h"
#include "scripted_server.h"

namespace fcap::redis {
namespace {

using Epoch = std::optional<std::uint64_t>;
constexpr Epoch kHidden = std::nullopt;

NamedMaster named(const std::string& address, Epoch epoch) {
  return {parse_address(address).value(), epoch};
}

class SentinelAnswersTest : public ::testing::Test {
 protected:
  // Which master counts, once `sentinel` names this one.
  std::string take(std::size_t sentinel, const std::string& address, Epoch epoch) {
    return answers_.answer(answers_.take(sentinel, named(address, epoch))).address.text;
  }

  SentinelAnswers answers_{3};
};

TEST_F(SentinelAnswersTest, TheHighestEpochCountsWhoeverAnsweredLast) {
  EXPECT_EQ(take(0, "old:1", 4), "old:1");
  EXPECT_EQ(take(1, "new:1", 5), "new:1");
  EXPECT_EQ(take(0, "old:1", 4), "new:1");
  EXPECT_EQ(take(0, "newer:1", 6), "newer:1");
}

TEST_F(SentinelAnswersTest, OfOneEpochTheMasterThatMostNameCountsAndThenTheOneThatDidBefore) {
  EXPECT_EQ(take(0, "a:1", 0), "a:1");
  EXPECT_EQ(take(1, "b:1", 0), "a:1");
  EXPECT_EQ(take(2, "b:1", 0), "b:1");
  EXPECT_EQ(take(0, "a:1", 0), "b:1");
}

// All say 0 until the first failover that they hear of.
TEST_F(SentinelAnswersTest, TheFirstFailoverOutweighsWhatWasBeforeIt) {
  EXPECT_EQ(take(0, "old:1", 0), "old:1");
  EXPECT_EQ(take(1, "old:1", 0), "old:1");
  EXPECT_EQ(take(2, "new:1", 1), "new:1") << "although two name the other";
  EXPECT_EQ(take(0, "old:1", 0), "new:1");
}

TEST_F(SentinelAnswersTest, SentinelsThatWereSetUpAgainAreBelievedOnceAllHaveAnswered) {
  EXPECT_EQ(take(0, "old:1", 7), "old:1");
  EXPECT_EQ(take(1, "old:1", 7), "old:1");
  EXPECT_EQ(take(0, "new:1", 1), "old:1");
  EXPECT_EQ(take(1, "new:1", 1), "new:1");
}

TEST_F(SentinelAnswersTest, OneThatDoesNotAnswerIsForgotten) {
  EXPECT_EQ(take(0, "old:1", 7), "old:1");
  answers_.forget(0);
  EXPECT_EQ(take(1, "new:1", 1), "new:1");
}

TEST_F(SentinelAnswersTest, AnEpochThatOnlySomeTellDoesNotOutweighTheOthers) {
  EXPECT_EQ(take(0, "old:1", 7), "old:1");
  EXPECT_EQ(take(1, "new:1", kHidden), "old:1");
  EXPECT_EQ(take(2, "new:1", kHidden), "new:1");
  EXPECT_EQ(take(0, "old:1", 7), "new:1");
}

TEST_F(SentinelAnswersTest, WithoutEpochsAMasterThatCannotBeReachedIsLeftForTheOneNamedNext) {
  EXPECT_EQ(take(0, "dead:1", kHidden), "dead:1");
  EXPECT_EQ(take(1, "new:1", kHidden), "dead:1");
  EXPECT_EQ(take(0, "dead:1", kHidden), "dead:1");
  answers_.doubt();
  EXPECT_EQ(take(1, "new:1", kHidden), "new:1");
  EXPECT_EQ(take(0, "dead:1", kHidden), "new:1");
}

// Names this master with that epoch.
ScriptedServer::Answer naming(const std::string& host, int port, int epoch) {
  return [=](std::size_t, const ScriptedServer::Words& words) {
    if (words[1] == "GET-MASTER-ADDR-BY-NAME") {
      return resp_list({resp_text(host), resp_text(std::to_string(port))});
    }
    return resp_list({resp_text("name"), resp_text(words[2]), resp_text("config-epoch"),
                      resp_text(std::to_string(epoch))});
  };
}

TEST(SentinelsTest, OneThatIsCutOffFromTheOthersDoesNotKeepAClientAtAFormerMaster) {
  // The first to be asked, which always answers.
  const ScriptedServer cut_off(naming("127.0.0.1", 1001, 3));
  const ScriptedServer other(naming("127.0.0.1", 1002, 4));
  const ScriptedServer third(naming("127.0.0.1", 1002, 4));
  RedisOptions options;
  options.sentinel_master = "m";
  Sentinels sentinels(
      options,
      {parse_address(cut_off.address()).value(), parse_address(other.address()).value(),
       parse_address(third.address()).value()},
      [] { return Credentials::Current{}; }, [](LogLevel, const std::string&) {}, [] {});
  ASSERT_TRUE(sentinels.start().ok());
  EXPECT_TRUE(eventually([&] { return sentinels.master_text() == "127.0.0.1:1002"; }));
  const std::uint64_t changes = sentinels.changes();
  // A round more, in which the first one is asked again.
  for (int i = 0; i < 4; ++i) {
    std::atomic<bool> found{false};
    sentinels.find([&](const Result<Endpoints>& endpoints) {
      EXPECT_TRUE(endpoints.ok());
      found = true;
    });
    ASSERT_TRUE(eventually([&] { return found.load(); }));
  }
  EXPECT_EQ(sentinels.changes(), changes);
  EXPECT_EQ(sentinels.master_text(), "127.0.0.1:1002");
}

}  // namespace
}  // namespace fcap::redis
