// Stopping the daemon takes no longer than its documentation says, whatever Kafka does meanwhile.
#include <csignal>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/kafka_test.h"
#include "support/process.h"
#include "test_paths.h"

namespace fcap {
namespace stopping_path_test {

using std::chrono::milliseconds;
using testing::Process;
using testing::wait_until;

constexpr milliseconds kPatience{60'000};
// With nothing to drain: five seconds for the last commit, ten for leaving; and a busy machine.
constexpr milliseconds kStopMax{60'000};

class UpdaterStopping : public testing::KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    updater_ = std::make_unique<Process>(std::vector<std::string>{
        FCAP_UPDATER_BINARY, "run", "--kafka.brokers", kafka->brokers(), "--kafka.topic", topic_,
        "--kafka.group_id", topic_, "--kafka.dead_letter_topic", "", "--redis.addresses",
        redis_->address(), "--http.enabled", "false"});
    const auto now =
        std::chrono::floor<milliseconds>(std::chrono::system_clock::now()).time_since_epoch();
    for (int i = 0; i < 100; ++i) {
      producer_->send(
          topic_, fmt::format("u{}", i),
          fmt::format(R"({{"user_id":"u{}","campaign_id":"c","timestamp":{},"imp_id":"{}"}})", i,
                      now.count(), i));
    }
    producer_->flush();
    ASSERT_TRUE(wait_until([this] { return redis_->number({"DBSIZE"}) >= 100; }, kPatience))
        << updater_->errors();
  }

  // Also where an assertion has failed: the broker is that of all tests.
  void TearDown() override {
    if (!kafka) return;
    killed_ ? kafka->start() : kafka->thaw();
  }

  void expect_end() {
    updater_->send_signal(SIGTERM);
    EXPECT_TRUE(updater_->wait_for(kStopMax)) << updater_->errors();
    EXPECT_EQ(updater_->exit_code(), 0) << updater_->errors();
    EXPECT_NE(updater_->errors().find("stopped: "), std::string::npos) << updater_->errors();
  }

  std::unique_ptr<Process> updater_;
  bool killed_ = false;  // the broker
};

TEST_F(UpdaterStopping, WhileKafkaIsDead) {
  kafka->kill();
  killed_ = true;
  expect_end();
}

TEST_F(UpdaterStopping, WhileKafkaIsFrozen) {
  kafka->freeze();
  expect_end();
}

TEST_F(UpdaterStopping, AfterTheTopicWasDeleted) {
  kafka->delete_topic(topic_);
  EXPECT_TRUE(wait_until(
      [this] { return updater_->errors().find("nknown topic") != std::string::npos; }, kPatience))
      << updater_->errors();
  expect_end();
}

}  // namespace stopping_path_test
}  // namespace fcap
