// The programs against a broker that knows its accounts by a client certificate or by user and
// password, PLAIN or SCRAM, over TLS; and what they say of each mistake.
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
namespace kafka_tls_path_test {

using ::testing::AllOf;
using testing::Certificate;
using testing::Certificates;
using testing::Finished;
using ::testing::HasSubstr;
using testing::KafkaBroker;
using testing::KafkaProducer;
using ::testing::Not;
using testing::Process;
using testing::RedisServer;
using testing::wait_until;
using Properties = std::map<std::string, std::string>;

constexpr const char* kTopic = "impressions";

// A key and its certificate in one file, as Kafka reads them.
std::string in_one_file(const Certificate& certificate) {
  const std::string path = certificate.certificate_file + ".both";
  std::ofstream(path) << std::ifstream(certificate.key_file).rdbuf()
                      << std::ifstream(certificate.certificate_file).rdbuf();
  return path;
}

// A user of librdkafka, who is wrong in one way.
struct Mistake {
  std::string what;  ///< words that no other mistake is answered with
  std::string setting;
  std::string brokers;
  Properties properties;
  std::string password = "updater";
};

class KafkaTls : public ::testing::Test {
 protected:
  // One broker for all: on the listener for accounts by SASL_SSL, on OPEN without TLS, on CLIENTS
  // with client certificates, on EXPIRED with a certificate that has expired. The account "updater"
  // may do everything.
  static void SetUpTestSuite() {
    if (!KafkaBroker::available() || !RedisServer::available() || !Certificates::available()) {
      return;
    }
    authority.emplace("fcap test authority");
    other.emplace("another authority");
    const std::string valid = in_one_file(authority->issue("broker", "IP:127.0.0.1"));
    const std::string expired = in_one_file(authority->issue_expired("expired", "IP:127.0.0.1"));
    const std::string scram_module =
        "org.apache.kafka.common.security.scram.ScramLoginModule required;";
    // Kafka 4 refuses the SCRAM of librdkafka before 2.6.1 (librdkafka's pull request 4895), and
    // Debian 12's is 2.0.2. Kafka 3.9 accepts that of both.
    kafka = std::make_unique<KafkaBroker>(
        std::vector<std::string>{"updater"},
        std::vector<std::string>{
            "fcap.version=3.9.1", "fcap.listeners=OPEN,CLIENTS,EXPIRED",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "ACCOUNTS:SASL_SSL,OPEN:SASL_PLAINTEXT,CLIENTS:SSL,EXPIRED:SSL",
            "super.users=User:ANONYMOUS;User:updater;User:CN=updater",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.open.sasl.enabled.mechanisms=SCRAM-SHA-256",
            "listener.name.open.scram-sha-256.sasl.jaas.config=" + scram_module,
            "listener.name.clients.ssl.client.auth=required", "ssl.keystore.type=PEM",
            "ssl.keystore.location=" + valid,
            "listener.name.expired.ssl.keystore.location=" + expired, "ssl.truststore.type=PEM",
            "ssl.truststore.location=" + authority->ca_file()});
    kafka->create_topic(kTopic, 1, {"retention.ms=-1"});
    kafka->create_topic("impressions.dead", 1);
  }
  static void TearDownTestSuite() {
    kafka.reset();
    other.reset();
    authority.reset();
  }
  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "a server's program or openssl is missing";
    redis_ = std::make_unique<RedisServer>();
  }

  std::vector<std::string> updater(const std::string& command, const std::string& brokers,
                                   const Properties& properties) {
    std::string members;
    for (const auto& [name, value] : properties) {
      members += (members.empty() ? "\"" : ", \"") + name + "\": \"" + value + "\"";
    }
    const std::string config = new_file();
    std::ofstream(config) << R"({"kafka": {"brokers": [")" << brokers << R"("], "group_id": ")"
                          << ::testing::UnitTest::GetInstance()->current_test_info()->name()
                          << R"(", "properties": {)" << members
                          << R"(}}, "redis": {"addresses": [")" << redis_->address()
                          << R"("]}, "http": {"port": 0}})";
    std::vector<std::string> words = {FCAP_UPDATER_BINARY, command, "--config", config};
    if (command == "check-config") words.emplace_back("--connect");
    return words;
  }
  std::vector<std::string> erasing(const Mistake& mistake) {
    const std::string config = new_file();
    std::ofstream file(config);
    for (const auto& [name, value] : mistake.properties) file << name << "=" << value << "\n";
    if (mistake.properties.contains("sasl.mechanism")) {
      file << "sasl.password=" << mistake.password << "\n";
    }
    return {FCAP_CLI_BINARY, "erase",   "u1",   "--yes",          "--brokers",
            mistake.brokers, "--topic", kTopic, "--kafka-config", config};
  }
  std::string new_file() { return directory_.path() / ("config" + std::to_string(++files_)); }

  static Process::Options with_password(const std::string& password) {
    return {.environment = {"FCAP_UPDATER_KAFKA_SASL_PASSWORD=" + password}, .input = {}};
  }
  void expect_counts(const std::string& brokers, const Properties& properties,
                     const Process::Options& environment) {
    Process running(updater("run", brokers, properties), environment);
    KafkaProducer producer(kafka->brokers());
    const testing::MadeEvent event = events_.next();
    producer.send(kTopic, event.user_id, event.json());
    producer.flush();
    EXPECT_TRUE(wait_until([&] {
      return redis_->command({"EXISTS", "fcap:{" + event.user_id + "}"}) == "1";
    })) << running.errors();
    running.send_signal(SIGTERM);
    EXPECT_EQ(running.wait(), 0) << running.errors();
  }

  static Properties by_password(const std::string& mechanism, const std::string& protocol) {
    return {{"security.protocol", protocol},
            {"sasl.mechanism", mechanism},
            {"sasl.username", "updater"},
            {"broker.address.family", "v4"}};
  }
  static Properties trusting(Properties properties, const Certificates& whom) {
    properties["ssl.ca.location"] = whom.ca_file();
    return properties;
  }
  static std::vector<Mistake> all_mistakes() {
    const std::string& accounts = kafka->accounts_brokers();
    const std::string port = accounts.substr(accounts.rfind(':'));
    const Properties secure = trusting(by_password("PLAIN", "sasl_ssl"), *authority);
    const Properties tls = trusting({{"security.protocol", "ssl"}}, *authority);
    return {
        {"the broker's certificate is not for \"localhost\"", "kafka.brokers", "localhost" + port,
         secure},
        {"the broker's certificate has expired", "ssl.keystore.location",
         kafka->brokers_at("expired"), tls},
        {"the broker's certificate comes from an authority that is not trusted here",
         "ssl.ca.location", accounts, trusting(secure, *other)},
        {"the broker may expect TLS on this port", "security.protocol", accounts,
         by_password("PLAIN", "sasl_plaintext")},
        {"the broker may not speak TLS on this port", "security.protocol", kafka->brokers(), tls},
        {"the broker requires a client certificate", "ssl.certificate.location",
         kafka->brokers_at("clients"), tls},
        {"Invalid username or password", "kafka.sasl_password_file", accounts, secure, "hunter2"},
        {"invalid credentials with SASL mechanism SCRAM-SHA-512", "kafka.sasl_password_file",
         accounts, trusting(by_password("SCRAM-SHA-512", "sasl_ssl"), *authority), "hunter2"},
        {"invalid credentials with SASL mechanism SCRAM-SHA-256", "kafka.sasl_password_file",
         kafka->brokers_at("open"), by_password("SCRAM-SHA-256", "sasl_plaintext"), "hunter2"},
    };
  }

  static inline std::optional<Certificates> authority;
  static inline std::optional<Certificates> other;
  static inline std::unique_ptr<KafkaBroker> kafka;
  // A user of its own for each event: a record shows that this very event was counted.
  testing::EventMaker events_{1, 1'000'000};
  std::unique_ptr<RedisServer> redis_;
  testing::TemporaryDirectory directory_;
  int files_ = 0;
};

TEST_F(KafkaTls, UserAndPassword) {
  for (const std::string mechanism : {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    SCOPED_TRACE(mechanism);
    expect_counts(kafka->accounts_brokers(),
                  trusting(by_password(mechanism, "sasl_ssl"), *authority),
                  with_password("updater"));
  }
}

TEST_F(KafkaTls, ScramWithoutTls) {
  expect_counts(kafka->brokers_at("open"), by_password("SCRAM-SHA-256", "sasl_plaintext"),
                with_password("updater"));
}

TEST_F(KafkaTls, AClientCertificate) {
  const Certificate mine = authority->issue("updater", "DNS:updater");
  expect_counts(kafka->brokers_at("clients"),
                trusting({{"security.protocol", "ssl"},
                          {"ssl.certificate.location", mine.certificate_file},
                          {"ssl.key.location", mine.key_file}},
                         *authority),
                {});
}

TEST_F(KafkaTls, EachMistakeHasAnErrorOfItsOwnThatNamesTheSetting) {
  const std::vector<Mistake> mistakes = all_mistakes();
  const auto expect_named = [&](const Mistake& mistake, const std::string& text) {
    EXPECT_THAT(text, AllOf(HasSubstr(mistake.what), HasSubstr(mistake.setting),
                            Not(HasSubstr("hunter2"))));
    for (const Mistake& each : mistakes) {
      if (each.what == mistake.what) continue;
      EXPECT_THAT(text, Not(HasSubstr(each.what)));
    }
  };
  // All at once, since each waits for its broker for some seconds.
  struct Asked {
    std::unique_ptr<Process> doctor;
    std::unique_ptr<Process> running;
    std::unique_ptr<Process> command;
  };
  std::vector<Asked> asked;
  for (const Mistake& mistake : mistakes) {
    const auto options = with_password(mistake.password);
    asked.push_back(
        {std::make_unique<Process>(updater("check-config", mistake.brokers, mistake.properties),
                                   options),
         std::make_unique<Process>(updater("run", mistake.brokers, mistake.properties), options),
         std::make_unique<Process>(erasing(mistake))});
  }
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    SCOPED_TRACE(mistakes[i].what);
    const auto options = with_password(mistakes[i].password);
    const auto again = [&](std::unique_ptr<Process>& process, const std::vector<std::string>& words,
                           std::string (Process::*said)() const) {
      EXPECT_EQ(process->wait(), 1);
      // It asks for a few seconds, in which the broker of a busy machine may not have come to say
      // why.
      wait_until([&] {
        if ((*process.*said)().find(mistakes[i].what) != std::string::npos) return true;
        process = std::make_unique<Process>(words, options);
        EXPECT_EQ(process->wait(), 1);
        return false;
      });
      expect_named(mistakes[i], (*process.*said)());
    };
    again(asked[i].doctor, updater("check-config", mistakes[i].brokers, mistakes[i].properties),
          &Process::output);
    again(asked[i].command, erasing(mistakes[i]), &Process::errors);
    Process& running = *asked[i].running;
    EXPECT_TRUE(wait_until(
        [&] { return running.errors().find(mistakes[i].setting) != std::string::npos; }));
    expect_named(mistakes[i], running.errors());
  }
}

}  // namespace kafka_tls_path_test
}  // namespace fcap
