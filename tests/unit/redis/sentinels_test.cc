// Whom Sentinels that disagree are believed.
#include "redis/sentinels.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "redis/sentinel_answers.h"
#include "tests/support/scripted_server.h"

namespace fcap::redis {
namespace sentinels_test {

using Epoch = std::optional<std::uint64_t>;
constexpr Epoch kHidden = std::nullopt;

NamedMaster named(const std::string& address, Epoch epoch) {
  return {parse_address(address).value(), epoch};
}

class SentinelAnswersTest : public ::testing::Test {
 protected:
  // Which master counts, once `sentinel` names this one.
  std::string take(std::size_t sentinel, const std::string& address, Epoch epoch) {
    return answers_.answer(answers_.note_answer(sentinel, named(address, epoch), now_))
        .address.text;
  }

  SentinelAnswers answers_{3};
  SentinelAnswers::TimePoint now_{std::chrono::hours{1}};
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

TEST_F(SentinelAnswersTest, WhatSilentOnesSaidCountsUntilItsMasterIsDoubted) {
  EXPECT_EQ(take(0, "new:1", 5), "new:1");
  EXPECT_EQ(take(1, "old:1", 4), "new:1");
  answers_.note_silence(0, now_);
  EXPECT_EQ(take(1, "old:1", 4), "new:1");
  answers_.doubt();
  EXPECT_EQ(take(1, "old:1", 4), "old:1");
}

TEST_F(SentinelAnswersTest, WhatOneSaidThatAnswersAgainOutlivesADoubt) {
  EXPECT_EQ(take(0, "new:1", 5), "new:1");
  answers_.note_silence(0, now_);
  EXPECT_EQ(take(0, "new:1", 5), "new:1");
  answers_.doubt();
  EXPECT_EQ(take(1, "old:1", 4), "new:1");
}

TEST_F(SentinelAnswersTest, OneThatIsSilentForGoodIsForgotten) {
  EXPECT_EQ(take(0, "old:1", 7), "old:1");
  answers_.note_silence(0, now_);
  now_ += SentinelAnswers::kKept - std::chrono::seconds{1};
  answers_.note_silence(0, now_);  // silence goes on: it does not begin again
  EXPECT_EQ(take(1, "new:1", 1), "old:1");
  now_ += std::chrono::seconds{1};
  EXPECT_EQ(take(1, "new:1", 1), "new:1");
}

TEST_F(SentinelAnswersTest, OneThatKnowsNoSuchMasterIsForgottenAtOnce) {
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

// Three Sentinels, the first of which was cut off from the others before a failover.
class SentinelsTest : public ::testing::Test {
 protected:
  // What the others answer, unless they are silent; counts the commands.
  ScriptedServer::Answer informed() {
    return [this, answer = naming("127.0.0.1", 1002, 4)](
               std::size_t connection,
               const ScriptedServer::Words& words) -> std::optional<std::string> {
      const bool silent = silent_;
      ++(silent ? unanswered_ : answered_);
      return silent ? std::nullopt : answer(connection, words);
    };
  }

  // Asks until each Sentinel that answers has had its turn.
  void ask_all() {
    for (int i = 0; i < 4; ++i) {
      std::atomic<bool> found{false};
      sentinels_.find([&](const Result<Endpoints>& endpoints) {
        EXPECT_TRUE(endpoints.ok());
        found = true;
      });
      ASSERT_TRUE(eventually([&] { return found.load(); }));
    }
  }

  std::atomic<bool> silent_{false};
  std::atomic<int> answered_{0};
  std::atomic<int> unanswered_{0};
  // The first to be asked, which always answers.
  const ScriptedServer cut_off_{naming("127.0.0.1", 1001, 3)};
  const ScriptedServer other_{informed()};
  const ScriptedServer third_{informed()};
  const RedisOptions options_ = [] {
    RedisOptions options;
    options.sentinel_master = "m";
    return options;
  }();
  Sentinels sentinels_{
      options_,
      {parse_address(cut_off_.address()).value(), parse_address(other_.address()).value(),
       parse_address(third_.address()).value()},
      [] { return Credentials::Current{}; },
      [](LogLevel, const std::string&) {},
      [] {}};
};

TEST_F(SentinelsTest, OneThatIsCutOffFromTheOthersDoesNotKeepAClientAtAFormerMaster) {
  ASSERT_TRUE(sentinels_.start().ok());
  EXPECT_TRUE(eventually([&] { return sentinels_.master_text() == "127.0.0.1:1002"; }));
  const std::uint64_t changes = sentinels_.changes();
  ask_all();
  EXPECT_EQ(sentinels_.changes(), changes);
  EXPECT_EQ(sentinels_.master_text(), "127.0.0.1:1002");
}

TEST_F(SentinelsTest, ThoseThatAreSilentForAMomentDoNotLeaveTheWordToOneThatIsCutOff) {
  ASSERT_TRUE(sentinels_.start().ok());
  EXPECT_TRUE(eventually([&] { return sentinels_.master_text() == "127.0.0.1:1002"; }));
  ask_all();
  const std::uint64_t changes = sentinels_.changes();
  silent_ = true;
  ask_all();
  EXPECT_GE(unanswered_, 2);
  EXPECT_EQ(sentinels_.changes(), changes);
  EXPECT_EQ(sentinels_.master_text(), "127.0.0.1:1002");
  // Whoever cannot reach the master must hear from those that know most, as soon as they answer.
  silent_ = false;
  answered_ = 0;
  sentinels_.doubt();
  ask_all();
  EXPECT_GE(answered_, 2);
  EXPECT_EQ(sentinels_.changes(), changes);
  EXPECT_EQ(sentinels_.master_text(), "127.0.0.1:1002");
}

}  // namespace sentinels_test
}  // namespace fcap::redis
