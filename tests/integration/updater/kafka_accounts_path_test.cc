// Every program against a broker that asks who it is, with the rights that docs/operations.md names
// and no others; and what check-config --connect says where one of them is missing.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "test_paths.h"

namespace fcap {
namespace kafka_accounts_path_test {

using testing::Finished;
using ::testing::HasSubstr;
using testing::KafkaBroker;
using testing::KafkaProducer;
using ::testing::Not;
using testing::Process;
using testing::RedisServer;
using testing::wait_until;
using Right = KafkaBroker::Right;

constexpr std::chrono::milliseconds kPatience{60'000};
constexpr const char* kTopic = "impressions";
constexpr const char* kDead = "impressions.dead";
constexpr int kPartitions = 3;

rd_kafka_AclOperation_t operation_named(const std::string& name) {
  if (name == "Read") return RD_KAFKA_ACL_OPERATION_READ;
  if (name == "Write") return RD_KAFKA_ACL_OPERATION_WRITE;
  if (name == "DescribeConfigs") return RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS;
  throw std::runtime_error("docs/operations.md: an operation that this test does not know: " +
                           name);
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream text(row);
  for (std::string cell; std::getline(text, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    cells.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// The rows of docs/operations.md, "Accounts", of this account at Kafka.
std::vector<Right> documented_rights(const std::string& account) {
  std::ifstream page(std::string(FCAP_SOURCE_DIR) + "/docs/operations.md");
  std::vector<Right> rights;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with('|')) inside = false;
    if (line.starts_with("| Kafka account |")) inside = true;
    const auto cells = cells_of(line);
    if (!inside || cells.size() != 4 || cells[0] != account) continue;
    const auto quote = cells[2].find('`');
    const std::string name = cells[2].substr(quote + 1, cells[2].rfind('`') - quote - 1);
    rights.push_back(
        {cells[2].starts_with("group") ? RD_KAFKA_RESOURCE_GROUP : RD_KAFKA_RESOURCE_TOPIC, name,
         operation_named(cells[1])});
  }
  return rights;
}

class KafkaAccounts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!KafkaBroker::available() || !RedisServer::available()) return;
    kafka = std::make_unique<KafkaBroker>(std::vector<std::string>{"updater", "command"});
    kafka->create_topic(kTopic, kPartitions, {"retention.ms=-1"});
    kafka->create_topic(kDead, 1);
  }
  static void TearDownTestSuite() { kafka.reset(); }
  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "a server's program is missing";
    kafka->forbid_all("updater");
    kafka->forbid_all("command");
    redis_ = std::make_unique<RedisServer>();
    config_ = directory_.path() / "updater.json";
    std::ofstream(config_) << R"({"kafka": {"brokers": [")" << kafka->accounts_brokers()
                           << R"("], "properties": {"security.protocol": "sasl_plaintext",
                                "sasl.mechanism": "PLAIN", "sasl.username": "updater"}},
                              "redis": {"addresses": [")"
                           << redis_->address() << R"("]}, "http": {"port": 0},
                              "pipeline": {"commit_interval": "50ms"}})";
    of_command_ = directory_.path() / "command.properties";
    std::ofstream(of_command_) << "security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\n"
                                  "sasl.username=command\nsasl.password=command\n";
  }

  static void allow(const std::string& account, const std::vector<Right>& rights) {
    for (const Right& right : rights) kafka->allow(account, right);
  }
  [[nodiscard]] std::vector<std::string> updater(std::vector<std::string> words) const {
    words.insert(words.begin(), FCAP_UPDATER_BINARY);
    words.insert(words.end(), {"--config", config_});
    return words;
  }
  [[nodiscard]] static Process::Options environment() {
    return {.environment = {"FCAP_UPDATER_KAFKA_SASL_PASSWORD=updater"}, .input = {}};
  }
  [[nodiscard]] Finished examine() const {
    return testing::run(updater({"check-config", "--connect"}), environment());
  }
  [[nodiscard]] Finished fcap(std::vector<std::string> words) const {
    words.insert(words.begin(), FCAP_CLI_BINARY);
    words.insert(words.end(), {"--brokers", kafka->accounts_brokers(), "--kafka-config",
                               of_command_, "--topic", kTopic});
    return testing::run(
        words,
        {.environment = {"FCAP_REDIS=" + redis_->address(), "FCAP_TIMEOUT=30s"}, .input = {}});
  }
  struct Line {
    std::string level;
    std::string part;
  };
  static bool has_line(const std::string& output, const Line& wanted) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(wanted.level) && line.find(wanted.part) != std::string::npos)
        return true;
    }
    return false;
  }
  // The doctor's lines that begin with these levels and hold these parts, once the broker obeys.
  void expect_findings(const std::vector<Line>& all) const {
    std::string output;
    EXPECT_TRUE(wait_until(
        [&] {
          output = examine().output;
          return std::all_of(all.begin(), all.end(),
                             [&](const Line& each) { return has_line(output, each); });
        },
        kPatience))
        << all.front().level << " … " << all.front().part << "\n"
        << output;
  }

  static inline std::unique_ptr<KafkaBroker> kafka;
  testing::TemporaryDirectory directory_;
  std::unique_ptr<RedisServer> redis_;
  std::string config_;
  std::string of_command_;
};

TEST_F(KafkaAccounts, CheckConfigFindsTheDocumentedRightsEnoughAndWritesNothing) {
  allow("updater", documented_rights("updater"));
  const std::int64_t dead = kafka->end_sum(kDead, 1);
  Finished done{};
  EXPECT_TRUE(wait_until(
      [&] {
        done = examine();
        return done.exit_code == 0 && done.output.find("warning") == std::string::npos;
      },
      kPatience))
      << done.output << done.errors;
  EXPECT_THAT(done.output, HasSubstr("topic impressions.dead can be written to"));
  EXPECT_EQ(kafka->end_sum(kDead, 1), dead);
  EXPECT_EQ(kafka->committed_sum("fcap-updater", kTopic, kPartitions), 0);
}

TEST_F(KafkaAccounts, EachMissingRightIsNamed) {
  const std::vector<Right> all = documented_rights("updater");
  ASSERT_EQ(all.size(), 5U);
  const std::vector<Line> findings = {
      {"error", "kafka.topic: allow the account to read it"},
      {"warning", "allow the account to describe its configuration"},
      {"error", "kafka.dead_letter_topic: allow the account to write to it"},
      {"error", "group fcap-updater: allow the account to read the group"},
      {"warning", "group fcap-updater-replay, which replay uses: allow the account to read"}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    kafka->forbid_all("updater");
    auto rest = all;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    allow("updater", rest);
    expect_findings({findings[i]});
  }
}

// An account that may see everything looks well until it reads, writes or commits.
TEST_F(KafkaAccounts, DescribingIsNotEnough) {
  const auto describe = RD_KAFKA_ACL_OPERATION_DESCRIBE;
  allow("updater", {{RD_KAFKA_RESOURCE_TOPIC, kTopic, describe},
                    {RD_KAFKA_RESOURCE_TOPIC, kDead, describe},
                    {RD_KAFKA_RESOURCE_GROUP, "fcap-updater", describe}});
  expect_findings({{"error", "topic impressions cannot be read: allow the account to read it"},
                   {"error", "topic impressions.dead cannot be written to: allow the account"},
                   {"error", "group fcap-updater: allow the account to read the group"}});
}

TEST_F(KafkaAccounts, AWrongPasswordIsNamed) {
  const Finished done =
      testing::run(updater({"check-config", "--connect"}),
                   {.environment = {"FCAP_UPDATER_KAFKA_SASL_PASSWORD=wrong"}, .input = {}});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.output, HasSubstr("uthentication failed"));
}

TEST_F(KafkaAccounts, EveryProgramWorksWithTheDocumentedRights) {
  allow("updater", documented_rights("updater"));
  allow("command", documented_rights("command"));
  KafkaProducer producer(kafka->brokers());
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  for (int i = 0; i < 3; ++i) {
    const testing::MadeEvent event{
        .user_id = "u1", .campaign_id = "c1", .event_id = "e" + std::to_string(i), .time = now};
    producer.send(kTopic, "u1", event.json());
  }
  producer.send(kTopic, "u1", "no event");
  producer.flush();
  Process running(updater({"run"}), environment());
  EXPECT_TRUE(wait_until(
      [&] {
        return kafka->end_sum(kDead, 1) >= 1 && redis_->number({"EXISTS", "fcap:{u1}"}) == 1 &&
               kafka->committed_sum("fcap-updater", kTopic, kPartitions) >= 4;
      },
      kPatience))
      << running.errors();
  const std::string rules = directory_.path() / "rules.json";
  std::ofstream(rules) << R"({"rules": []})";
  const Finished audited = fcap({"audit", "--rules", rules});
  EXPECT_EQ(audited.exit_code, 0) << audited.output << audited.errors;
  EXPECT_THAT(audited.output, HasSubstr("produced"));
  const Finished erased = fcap({"erase", "u1", "--yes"});
  EXPECT_EQ(erased.exit_code, 0) << erased.errors;
  running.send_signal(SIGTERM);
  EXPECT_EQ(running.wait(), 0) << running.errors();
  EXPECT_THAT(running.errors(), Not(HasSubstr("uthorization")));
  const Finished replayed = testing::run(updater({"replay"}), environment());
  EXPECT_EQ(replayed.exit_code, 0) << replayed.output << replayed.errors;
  EXPECT_THAT(replayed.errors, Not(HasSubstr("uthorization")));
}

}  // namespace kafka_accounts_path_test
}  // namespace fcap
