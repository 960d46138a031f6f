// The updater against a broker that knows its accounts by a client certificate or by user and
// password, PLAIN or SCRAM, over TLS.
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/certificates.h"
#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "test_paths.h"

namespace fcap {
namespace {

using testing::Certificate;
using testing::Certificates;
using testing::Finished;
using testing::KafkaBroker;
using testing::KafkaProducer;
using testing::Process;
using testing::RedisServer;
using testing::wait_until;

constexpr const char* kTopic = "impressions";
// Kafka 4 refuses the SCRAM of librdkafka before 2.6.1 (librdkafka's pull request 4895), and Debian
// 12's is 2.0.2. Kafka 3.9 accepts that of both.
const std::vector<std::string> kByPassword = {
    "fcap.version=3.9.1", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"};

class KafkaTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!KafkaBroker::available() || !RedisServer::available() || !Certificates::available()) {
      GTEST_SKIP() << "a server's program or openssl is missing";
    }
    authority_.emplace("fcap test authority");
    other_.emplace("another authority");
    redis_ = std::make_unique<RedisServer>();
  }
  // With `protocol` on the listener for accounts, whose account "updater" may do everything.
  void start_broker(const std::string& protocol, const std::vector<std::string>& more) {
    const Certificate server = authority_->issue("broker", "IP:127.0.0.1");
    const std::string both = (authority_->directory() / "broker-both.pem").string();
    std::ofstream(both) << std::ifstream(server.key_file).rdbuf()
                        << std::ifstream(server.certificate_file).rdbuf();
    std::vector<std::string> settings = {
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ACCOUNTS:" +
            protocol,
        "super.users=User:ANONYMOUS;User:updater;User:CN=updater",
        "ssl.keystore.type=PEM",
        "ssl.keystore.location=" + both,
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=" + authority_->ca_file()};
    settings.insert(settings.end(), more.begin(), more.end());
    kafka_ = std::make_unique<KafkaBroker>(std::vector<std::string>{"updater"}, settings);
    kafka_->create_topic(kTopic, 1, {"retention.ms=-1"});
    kafka_->create_topic("impressions.dead", 1);
  }
  std::vector<std::string> updater(const std::string& command, const std::string& properties) {
    const std::string config = directory_.path() / "updater.json";
    std::ofstream(config) << R"({"kafka": {"brokers": [")" << kafka_->accounts_brokers()
                          << R"("], "properties": {)" << properties
                          << R"(}}, "redis": {"addresses": [")" << redis_->address()
                          << R"("]}, "http": {"port": 0}})";
    std::vector<std::string> words = {FCAP_UPDATER_BINARY, command, "--config", config};
    if (command == "check-config") words.emplace_back("--connect");
    return words;
  }
  static Process::Options with_password(const std::string& password) {
    return {.environment = {"FCAP_UPDATER_KAFKA_SASL_PASSWORD=" + password}, .input = {}};
  }
  void expect_counts(const std::string& properties, const Process::Options& environment) {
    Process running(updater("run", properties), environment);
    KafkaProducer producer(kafka_->brokers());
    const testing::MadeEvent event = events_.next();
    producer.send(kTopic, event.user_id, event.json());
    producer.flush();
    EXPECT_TRUE(wait_until([&] {
      return redis_->command({"EXISTS", "fcap:{" + event.user_id + "}"}) == "1";
    })) << running.errors();
    running.send_signal(SIGTERM);
    EXPECT_EQ(running.wait(), 0) << running.errors();
  }
  void expect_unreachable(const std::string& properties, const Process::Options& environment,
                          const std::string& part) {
    const Finished done = testing::run(updater("check-config", properties), environment);
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_THAT(done.output + done.errors, ::testing::HasSubstr(part));
  }
  static std::string account(const std::string& mechanism) {
    return entry("sasl.mechanism", mechanism) + ", " + entry("sasl.username", "updater");
  }
  static std::string properties(const std::string& mechanism, const std::string& ca_file) {
    return account(mechanism) + ", " + entry("security.protocol", "sasl_ssl") + ", " +
           entry("ssl.ca.location", ca_file);
  }
  static std::string entry(const std::string& name, const std::string& value) {
    return "\"" + name + "\": \"" + value + "\"";
  }

  std::optional<Certificates> authority_;
  std::optional<Certificates> other_;
  // A user of its own for each event: a record shows that this very event was counted.
  testing::EventMaker events_{1, 1'000'000};
  std::unique_ptr<KafkaBroker> kafka_;
  std::unique_ptr<RedisServer> redis_;
  testing::TemporaryDirectory directory_;
};

TEST_F(KafkaTls, UserAndPassword) {
  start_broker("SASL_SSL", kByPassword);
  for (const std::string mechanism : {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    SCOPED_TRACE(mechanism);
    const std::string by_password = properties(mechanism, authority_->ca_file());
    expect_counts(by_password, with_password("updater"));
    expect_unreachable(by_password, with_password("wrong"), "kafka.sasl_password_file");
    expect_unreachable(by_password, with_password("wrong"), "Authentication failed");
  }
  expect_unreachable(properties("PLAIN", other_->ca_file()), with_password("updater"),
                     "certificate verify failed");
}

TEST_F(KafkaTls, ScramWithoutTls) {
  start_broker("SASL_PLAINTEXT", kByPassword);
  const std::string scram =
      account("SCRAM-SHA-256") + ", " + entry("security.protocol", "sasl_plaintext");
  expect_counts(scram, with_password("updater"));
  expect_unreachable(scram, with_password("wrong"), "kafka.sasl_password_file");
}

TEST_F(KafkaTls, AClientCertificate) {
  start_broker("SSL", {"ssl.client.auth=required"});
  const Certificate mine = authority_->issue("updater", "DNS:updater");
  const std::string trusts =
      entry("security.protocol", "ssl") + ", " + entry("ssl.ca.location", authority_->ca_file());
  expect_counts(trusts + ", " + entry("ssl.certificate.location", mine.certificate_file) + ", " +
                    entry("ssl.key.location", mine.key_file),
                {});
  expect_unreachable(trusts, {}, "kafka");
}

}  // namespace
}  // namespace fcap
