// Passwords and certificates for Kafka that are replaced while the daemon runs: it takes them up by
// itself, stays the same process, and every event is counted once.
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "support/certificates.h"
#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/notify_socket.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/store_calls.h"
#include "test_paths.h"

namespace fcap {
namespace restart_path_test {

using std::chrono::milliseconds;
using testing::Certificate;
using testing::Certificates;
using testing::KafkaBroker;
using testing::Process;
using testing::RedisServer;
using testing::wait_until;

constexpr milliseconds kPatience{180'000};
constexpr const char* kTopic = "impressions";
constexpr int kPartitions = 3;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UpdaterRestart : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!KafkaBroker::available() || !RedisServer::available() || !Certificates::available()) {
      GTEST_SKIP() << "a server's program or openssl is missing";
    }
    former_ = std::make_unique<Certificates>("former authority");
    later_ = std::make_unique<Certificates>("later authority");
    redis_ = std::make_unique<RedisServer>();
    replace("both.pem", contents(former_->ca_file()) + contents(later_->ca_file()));
    kafka_ = std::make_unique<KafkaBroker>(kAccounts, broker(*former_, file("both.pem"), "former"));
    kafka_->create_topic(kTopic, kPartitions, {"retention.ms=-1"});
    RedisOptions options;
    options.addresses = {redis_->address()};
    store_ = make_redis_store(options).value();
  }

  // A broker that asks for both a client certificate and a password.
  std::vector<std::string> broker(const Certificates& its, const std::string& trusted,
                                  const std::string& password) {
    const Certificate certificate = its.issue("broker", "IP:127.0.0.1");
    replace("broker.pem", contents(certificate.key_file) + contents(certificate.certificate_file));
    return {
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "ACCOUNTS:SASL_SSL",
        "super.users=User:ANONYMOUS;User:updater",
        "listener.name.accounts.ssl.client.auth=required",
        "listener.name.accounts.plain.sasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required user_updater=\"" +
            password + "\";",
        "ssl.keystore.type=PEM",
        "ssl.keystore.location=" + file("broker.pem"),
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=" + trusted};
  }

  void start_updater() {
    std::ofstream(file("updater.json"))
        << R"({"kafka": {"brokers": [")" << kafka_->accounts_brokers()
        << R"("], "dead_letter_topic": "", "sasl_password_file": ")" << file("password")
        << R"(", "properties": {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN",
              "sasl.username": "updater", "session.timeout.ms": "10000", "ssl.ca.location": ")"
        << file("ca.pem") << R"(", "ssl.certificate.location": ")" << file("certificate.pem")
        << R"(", "ssl.key.location": ")" << file("key.pem") << R"("}}, "redis": {"addresses": [")"
        << redis_->address() << R"("]}, "http": {"port": 0}})";
    updater_ = std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", file("updater.json")},
        Process::Options{.environment = {"NOTIFY_SOCKET=" + systemd_.path()}, .input = {}});
  }

  // Until the destruction of what it gives.
  std::jthread produce() {
    return std::jthread([this](const std::stop_token& stop) {
      testing::KafkaProducer producer(kafka_->brokers());
      while (!stop.stop_requested()) {
        const testing::MadeEvent event = maker_.next();
        producer.send(kTopic, event.user_id, event.json());
        expected_.add(event);
        std::this_thread::sleep_for(milliseconds{5});
      }
      producer.flush();
    });
  }

  // Another file takes the name, so that nobody reads half of it.
  void replace(const std::string& name, const std::string& text) const {
    std::ofstream(file("new")) << text;
    std::filesystem::rename(file("new"), file(name));
  }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_.path() / name; }
  bool says(const std::string& text) {
    return wait_until(
        [&] {
          systemd_.drain();
          return updater_->errors().find(text) != std::string::npos;
        },
        kPatience);
  }

  const std::vector<std::string> kAccounts = {"updater"};
  testing::TemporaryDirectory directory_;
  std::unique_ptr<Certificates> former_;
  std::unique_ptr<Certificates> later_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<KafkaBroker> kafka_;
  std::unique_ptr<Store> store_;
  testing::NotifySocket systemd_;
  std::unique_ptr<Process> updater_;
  testing::EventMaker maker_{1, 1'000};
  testing::ExpectedLedgers expected_;
};

TEST_F(UpdaterRestart, TakesUpEachFileOfKafkaAndCountsEveryEventOnce) {
  const Certificate first = former_->issue("updater", "DNS:updater");
  const Certificate second = later_->issue("updater", "DNS:updater");
  replace("password", "former");
  replace("ca.pem", contents(former_->ca_file()));
  replace("certificate.pem", contents(first.certificate_file));
  replace("key.pem", contents(first.key_file));
  start_updater();
  std::jthread producing = produce();
  ASSERT_TRUE(wait_until([this] { return redis_->number({"DBSIZE"}) >= 100; }, kPatience))
      << updater_->errors();

  // The broker does not know this password yet, so the former one stays in use.
  replace("password", "later");
  ASSERT_TRUE(
      says("cannot be used yet, so what was read before stays in use: kafka.sasl_password: "))
      << updater_->errors();
  // Nothing but what all the files are about to hold opens this one.
  kafka_->stop();
  kafka_->start(kAccounts, broker(*later_, later_->ca_file(), "later"));
  replace("ca.pem", contents(later_->ca_file()));
  replace("certificate.pem", contents(second.certificate_file));
  replace("key.pem", contents(second.key_file));
  ASSERT_TRUE(says("changed, so a restart reads them: kafka.sasl_password, "))
      << updater_->errors();
  ASSERT_TRUE(says("restarted: ready")) << updater_->errors();
  producing.request_stop();
  producing.join();
  testing::ExpectedLedgers::Difference difference;
  wait_until(
      [&] {
        systemd_.drain();
        difference = expected_.compare(*store_);
        return difference.none();
      },
      kPatience);
  EXPECT_TRUE(difference.none()) << difference.missing << " missing, " << difference.surplus
                                 << " surplus of " << expected_.events() << "\n"
                                 << updater_->errors();
  std::string heard;
  systemd_.drain();
  for (const auto& said : systemd_.heard) {
    for (const char* const state : {"READY=1", "RELOADING=1", "STOPPING=1"}) {
      if (said.has(state)) heard += std::string(state) + " ";
    }
  }
  EXPECT_EQ(heard, "READY=1 RELOADING=1 READY=1 ");
  EXPECT_TRUE(updater_->running()) << "still the process that was started";
  EXPECT_EQ(contents("/proc/" + std::to_string(updater_->pid()) + "/comm"), "fcap-updater\n");
  updater_->send_signal(SIGTERM);
  EXPECT_EQ(updater_->wait(), 0) << updater_->errors();
  EXPECT_EQ(kafka_->committed_sum("fcap-updater", kTopic, kPartitions),
            kafka_->end_sum(kTopic, kPartitions));
}

}  // namespace restart_path_test
}  // namespace fcap
