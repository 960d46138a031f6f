// The fcap command over a real Kafka: a topic simulated like a file, and librdkafka's properties.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/kafka_test.h"
#include "test_paths.h"

namespace fcap {
namespace kafka_path_test {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;

constexpr std::int64_t kFirstMs = 1'760'000'000'000;
constexpr std::int64_t kStepMs = 601'000;
constexpr int kImpressions = 300;

constexpr const char* kTwoADay = R"({"version": 1, "campaigns": [], "rules": [
  {"id": "two-a-day", "scope": "campaign", "target": "*", "event_type": "impression", "limit": 2,
   "window": {"kind": "sliding", "length": "24h"}}]})";
constexpr const char* kGap = R"({"version": 2, "campaigns": [], "rules": [
  {"id": "gap", "scope": "user", "event_type": "impression", "limit": 1,
   "window": {"kind": "sliding", "length": "2h"}}]})";

struct Message {
  std::string key;
  std::string value;
};

Message message(int number, const std::string& user, const std::string& type) {
  return {user,
          fmt::format(R"({{"user_id":"{}","campaign_id":"c{}","creative_id":"cr{}",)"
                      R"("timestamp":{},"type":"{}","imp_id":"i{}"}})",
                      user, number % 3, number % 2, kFirstMs + number * kStepMs, type, number)};
}

// Impressions of several users, two of them twice, a click, an erasure, somebody unknown, and what
// is not an event.
std::vector<Message> some_events() {
  std::vector<Message> messages;
  messages.reserve(kImpressions);
  for (int i = 0; i < kImpressions; ++i) {
    messages.push_back(message(i, "u" + std::to_string(i % 7), "impression"));
  }
  messages.push_back(messages[10]);
  messages.push_back(messages[200]);
  messages.push_back(message(20, "u6", "click"));
  messages.push_back(message(kImpressions, "", "impression"));
  messages.push_back({"u3", fmt::format(R"({{"user_id":"u3","type":"erasure","timestamp":{}}})",
                                        kFirstMs + 150 * kStepMs + 1)});
  messages.push_back({"u1", R"({"user_id":"u1","campaign_id":"c1"})"});
  return messages;
}

class CliKafka : public testing::KafkaTest {
 protected:
  static void SetUpTestSuite() {
    KafkaTest::SetUpTestSuite();
    if (!kafka) return;
    log_topic = testing::unique_topic();
    kafka->create_topic(log_topic, kPartitions);
    testing::KafkaProducer producer(kafka->brokers());
    for (const Message& each : some_events()) producer.send(log_topic, each.key, each.value);
    producer.flush();
  }

  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    two_a_day_ = write("two_a_day.json", kTwoADay);
    gap_ = write("gap.json", kGap);
    std::string lines;
    for (const Message& each : some_events()) lines += each.value + "\n";
    events_ = write("events.jsonl", lines);
  }

  std::string write(const std::string& name, const std::string& content) {
    std::string path = directory_.path() / name;
    std::ofstream(path) << content;
    return path;
  }

  [[nodiscard]] Finished simulate(const std::vector<std::string>& words) const {
    std::vector<std::string> command = {FCAP_CLI_BINARY, "simulate", "--json", "--rules",
                                        two_a_day_,      "--rules",  gap_};
    command.insert(command.end(), words.begin(), words.end());
    return testing::run(command, {.environment = {"FCAP_TIMEOUT=30s"}, .input = {}});
  }

  [[nodiscard]] Finished simulate_topic(std::vector<std::string> words) const {
    words.insert(words.end(), {"--kafka", kafka->brokers(), "--topic", log_topic});
    return simulate(words);
  }

  // Without where the events came from.
  static json report(const Finished& finished) {
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    json report = json::parse(finished.output, nullptr, /*allow_exceptions=*/false);
    report["log"].erase("sources");
    report["log"].erase("made_at");
    for (json& rejection : report["log"]["rejections"]) {
      rejection.erase("source");
      rejection.erase("line");
    }
    return report;
  }

  static inline std::string log_topic;
  testing::TemporaryDirectory directory_;
  std::string two_a_day_;
  std::string gap_;
  std::string events_;
};

TEST_F(CliKafka, ATopicIsSimulatedLikeAFileOfTheSameEvents) {
  const json of_topic = report(simulate_topic({}));
  EXPECT_EQ(of_topic, report(simulate({"--log", events_})));
  EXPECT_EQ(of_topic["log"]["impressions"], kImpressions);
  EXPECT_EQ(of_topic["log"]["users"], 7);
  EXPECT_EQ(of_topic["log"]["repeated"], 2);
  EXPECT_EQ(of_topic["log"]["without_user"], 1);
  EXPECT_EQ(of_topic["log"]["rejected"], 1);
  EXPECT_EQ(of_topic["rule_sets"].size(), 2U);
  for (const json& rules : of_topic["rule_sets"]) EXPECT_GT(rules["blocked"], 0) << rules["name"];
}

TEST_F(CliKafka, ATopicAndAFileOfTheSameEventsCountOnce) {
  const json both = report(simulate_topic({"--log", events_}));
  EXPECT_EQ(both["log"]["impressions"], kImpressions);
  EXPECT_EQ(both["rule_sets"], report(simulate_topic({}))["rule_sets"]);
}

TEST_F(CliKafka, PropertiesReachTheClient) {
  const std::string config = write("kafka.properties", "# none\nclient.id=of-the-file\n");
  const Finished right =
      simulate_topic({"--kafka-config", config, "--kafka-property", "client.id=by-hand",
                      "--kafka-property", "fetch.min.bytes=1"});
  EXPECT_EQ(right.exit_code, 0) << right.errors;
  // A broker that speaks no TLS.
  const std::string tls = write("tls.properties", "security.protocol=ssl\n");
  const Finished refused = simulate_topic({"--kafka-config", tls, "--timeout", "10s"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("ssl://"));
  EXPECT_THAT(refused.errors, HasSubstr("--kafka-config"));
  const Finished wrong = simulate_topic({"--kafka-property", "client.idd=by-hand"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, HasSubstr("\"client.idd\""));
}

}  // namespace kafka_path_test
}  // namespace fcap
