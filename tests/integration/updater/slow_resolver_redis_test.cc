// Programs that Kafka's client does not let go of, because the system's resolver never answers it,
// end all the same, with their reason.
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"
#include "support/redis_server.h"
#include "test_paths.h"

namespace fcap {
namespace slow_resolver_redis_test {

using ::testing::HasSubstr;
using testing::Process;
using testing::wait_until;

// Twenty seconds and more for Kafka's answers, and a busy machine.
constexpr std::chrono::seconds kHangs{120};
constexpr const char* kBrokers = "broker.invalid:9092";

class ProgramOfASlowResolver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    redis_ = std::make_unique<testing::RedisServer>();
  }
  static std::unique_ptr<Process> start(const std::vector<std::string>& command) {
    return std::make_unique<Process>(
        command, Process::Options{.environment = {"LD_PRELOAD=" FCAP_SLOW_RESOLVER}, .input = {}});
  }
  [[nodiscard]] std::vector<std::string> updater(const std::string& command) const {
    return {FCAP_UPDATER_BINARY, command,          "--kafka.brokers", kBrokers,
            "--redis.addresses", redis_->address()};
  }
  static void expect_end(Process& process, int exit_code) {
    EXPECT_TRUE(process.wait_for(kHangs)) << process.errors();
    EXPECT_EQ(process.exit_code(), exit_code) << process.errors();
  }

  std::unique_ptr<testing::RedisServer> redis_;
};

TEST_F(ProgramOfASlowResolver, AReplaySaysThatItCannotBegin) {
  const auto replay = start(updater("replay"));
  expect_end(*replay, 1);
  EXPECT_THAT(replay->errors(), HasSubstr("metadata"));
}

TEST_F(ProgramOfASlowResolver, ACommandSaysThatNoBrokerAnswers) {
  const testing::TemporaryDirectory directory;
  const std::string rules = directory.path() / "rules.json";
  std::ofstream(rules) << R"({"version": 1, "rules": [], "campaigns": []})";
  const auto erase = start({FCAP_CLI_BINARY, "erase", "u", "--yes", "--brokers", kBrokers,
                            "--topic", "impressions", "--timeout", "1s"});
  const auto audit =
      start({FCAP_CLI_BINARY, "audit", "--brokers", kBrokers, "--topic", "impressions", "--timeout",
             "1s", "--redis", redis_->address(), "--rules", rules});
  for (Process* const command : {erase.get(), audit.get()}) {
    expect_end(*command, 1);
    EXPECT_THAT(command->errors(), HasSubstr("topic impressions"));
  }
}

TEST_F(ProgramOfASlowResolver, AnUpdaterStops) {
  std::vector<std::string> command = updater("run");
  command.insert(command.end(), {"--http.enabled", "false"});
  const auto run = start(command);
  EXPECT_TRUE(wait_until([&] {
    return run->errors().find("no broker answers") != std::string::npos;
  })) << run->errors();
  run->send_signal(SIGTERM);
  expect_end(*run, 0);
  EXPECT_THAT(run->errors(), HasSubstr("stopped: "));
}

}  // namespace slow_resolver_redis_test
}  // namespace fcap
