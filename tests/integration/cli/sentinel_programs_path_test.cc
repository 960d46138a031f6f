// The programs behind Sentinel, told by settings and by URLs: run, replay and sweep of
// fcap-updater, and the command.
#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/kafka_test.h"
#include "support/redis_sentinels.h"
#include "test_paths.h"

namespace fcap {
namespace sentinel_programs_path_test {

using testing::Finished;
using ::testing::HasSubstr;
using testing::Process;
using testing::RedisSentinels;
using testing::wait_until;

class ProgramsBehindSentinels : public testing::KafkaTest {
 protected:
  static constexpr int kUsers = 3'000;

  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    servers_ = std::make_unique<RedisSentinels>();
    const auto sentinels = servers_->sentinels();
    config_ = servers_directory_.path() / "updater.json";
    std::ofstream(config_) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "group_id": "{}", "dead_letter_topic": ""}},
             "redis": {{"topology": "sentinel", "addresses": ["{}", "{}", "{}"],
                        "sentinel_master": "fcap"}},
             "http": {{"enabled": false}}}})",
        kafka->brokers(), topic_, topic_, sentinels[0], sentinels[1], sentinels[2]);
    const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())
                         .time_since_epoch()
                         .count();
    for (int i = 0; i < kUsers; ++i) {
      producer_->send(
          topic_, fmt::format("u{}", i),
          fmt::format(R"({{"user_id":"u{}","campaign_id":"c","timestamp":{},"imp_id":"{}"}})", i,
                      now, i));
    }
    producer_->flush();
  }

  [[nodiscard]] bool has_all_users(int node) const {
    std::size_t users = 0;
    const std::string keys = servers_->command(node, {"KEYS", "fcap:{u*"});
    for (std::size_t at = 0; (at = keys.find("fcap:{u", at)) != std::string::npos; ++at) ++users;
    return users == kUsers;
  }

  [[nodiscard]] Finished shown(const std::vector<std::string>& where) const {
    std::vector<std::string> words = {FCAP_CLI_BINARY};
    words.insert(words.end(), where.begin(), where.end());
    words.insert(words.end(), {"show", "u7"});
    return testing::run(words);
  }

  testing::TemporaryDirectory servers_directory_;
  std::unique_ptr<RedisSentinels> servers_;
  std::filesystem::path config_;
};

TEST_F(ProgramsBehindSentinels, AllOfThemFollowTheMaster) {
  Process updater({FCAP_UPDATER_BINARY, "run", "--config", config_.string()});
  EXPECT_TRUE(wait_until([&] { return has_all_users(0); })) << updater.errors();
  servers_->kill_master(0);
  const int master = servers_->wait_for_other_master(0);
  ASSERT_GT(master, 0);
  EXPECT_TRUE(wait_until([&] { return has_all_users(master); })) << updater.errors();
  updater.send_signal(SIGTERM);
  EXPECT_EQ(updater.wait(), 0) << updater.errors();

  for (const auto& where : {std::vector<std::string>{"--config", config_.string()},
                            std::vector<std::string>{"--redis", servers_->url()}}) {
    const Finished show = shown(where);
    EXPECT_EQ(show.exit_code, 0) << show.errors;
    EXPECT_THAT(show.output, HasSubstr("u7"));
  }
  // A URL in a variable, where it is a list with commas.
  const Finished swept = testing::run(
      {FCAP_UPDATER_BINARY, "sweep", "--json", "--quiet"},
      {.environment = {"FCAP_UPDATER_REDIS_ADDRESSES=" + servers_->url()}, .input = {}});
  EXPECT_EQ(swept.exit_code, 0) << swept.errors;
  EXPECT_THAT(swept.output, HasSubstr(fmt::format("\"records\":{}", kUsers)));
}

TEST_F(ProgramsBehindSentinels, AReplayBeginsAgainWhenItsMasterWasKilled) {
  Process replay(
      {FCAP_UPDATER_BINARY, "replay", "--config", config_.string(), "--json", "--rate", "1000"});
  EXPECT_TRUE(wait_until([&] {
    return servers_->command(0, {"EXISTS", "fcap:{u1}", "fcap:{u2}", "fcap:{u3}"}) != "0";
  })) << replay.errors();
  servers_->kill_master(0);
  ASSERT_GT(servers_->wait_for_other_master(0), 0);
  EXPECT_EQ(replay.wait(), 0) << replay.errors();
  // Sentinels of a busy machine may have elected yet another one meanwhile.
  EXPECT_TRUE(wait_until([&] {
    const int master = servers_->master();
    return master >= 0 && has_all_users(master);
  })) << replay.errors();
}

}  // namespace sentinel_programs_path_test
}  // namespace fcap
