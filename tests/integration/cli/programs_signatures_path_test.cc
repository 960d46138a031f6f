// What a replay and an audit make of ids whose signature is missing or forged: neither is counted,
// and neither is lost.
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcap/signed_id.h>

#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "test_paths.h"

namespace fcap {
namespace programs_signatures_path_test {

using nlohmann::json;
using testing::EventMaker;
using testing::Finished;
using testing::MadeEvent;

std::string keys_json(char digit) {
  return fmt::format(
      R"({{"keys": [{{"id": "k", "secret": "{}", "from": "2020-01-01T00:00:00Z"}}]}})",
      std::string(64, digit));
}

class SignaturesInPrograms : public testing::KafkaTest {
 protected:
  static constexpr int kGenuine = 200;
  static constexpr int kWrong = 2;

  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    const std::string keys = files_.path() / "keys.json";
    std::ofstream(keys) << keys_json('a');
    write_config(verifying_, fmt::format(R"({{"key_file": "{}", "required": "all"}})", keys));
    write_config(trusting_, "{}");
    std::ofstream(rules_) << R"({"version": 1, "rules": [], "campaigns": []})";
    for (int i = 0; i < kGenuine; ++i) produce('a');
    produce('f');
    produce({});
    producer_->flush();
  }

  void write_config(const std::string& file, const std::string& signatures) const {
    std::ofstream(file) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "group_id": "{}", "dead_letter_topic": ""}},
             "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}}, "signatures": {}}})",
        kafka->brokers(), topic_, topic_, redis_->address(), signatures);
  }

  // An event of the last hour, signed with a key of this digit, if one is given.
  void produce(std::optional<char> digit) {
    MadeEvent event = maker_.next();
    event.time = now_ - std::chrono::hours(1);
    if (digit) {
      const auto keys = SigningKeys::parse(keys_json(*digit));
      ASSERT_TRUE(keys.ok()) << keys.status().text();
      const SignedImpression shown{.user_id = event.user_id, .campaign_id = event.campaign_id};
      event.event_id = keys.value()->sign(shown, event.time).value();
    }
    producer_->send(topic_, event.user_id, event.json());
  }

  static Finished replay(const std::string& config) {
    return testing::run({FCAP_UPDATER_BINARY, "replay", "--config", config, "--json"});
  }
  [[nodiscard]] Finished audit(const std::string& config) const {
    return testing::run({FCAP_CLI_BINARY, "--config", config, "--rules", rules_, "--timeout", "30s",
                         "audit", "--propagation-ms", "0", "--json"});
  }

  const Instant now_ =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  testing::TemporaryDirectory files_;
  const std::string verifying_ = files_.path() / "verifying.json";
  const std::string trusting_ = files_.path() / "trusting.json";
  const std::string rules_ = files_.path() / "rules.json";
  EventMaker maker_{1, 50};
};

TEST_F(SignaturesInPrograms, WhatAReplayRefusesAnAuditDoesNotMiss) {
  const Finished replayed = replay(verifying_);
  EXPECT_EQ(replayed.exit_code, 0) << replayed.errors;
  const Finished verified = audit(verifying_);
  EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.errors;
  const json report = json::parse(verified.output, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << verified.output;
  EXPECT_EQ(report["counted"], kGenuine);
  EXPECT_EQ(report["rejected"], kWrong);
  EXPECT_EQ(report["lost"], 0);

  // Who does not verify takes them for real ones that nobody has counted.
  const Finished trusted = audit(trusting_);
  EXPECT_EQ(trusted.exit_code, 1) << trusted.output << trusted.errors;
  EXPECT_EQ(json::parse(trusted.output)["lost"], kWrong);
  // And counts them.
  const Finished counted = replay(trusting_);
  EXPECT_EQ(counted.exit_code, 0) << counted.errors;
  EXPECT_EQ(audit(trusting_).exit_code, 0);
  // An audit that verifies sees that there is more in Redis than there may be.
  const Finished forged = audit(verifying_);
  EXPECT_EQ(forged.exit_code, 1) << forged.output << forged.errors;
  EXPECT_EQ(json::parse(forged.output)["double"], kWrong);
}

}  // namespace programs_signatures_path_test
}  // namespace fcap
