#include "support/whole_path.h"

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "support/or_throw.h"
#include "test_paths.h"

namespace fcap::testing {

std::string to_json(const SeenEvent& event) {
  return fmt::format(R"({{"user_id":"{}","campaign_id":"{}","timestamp":{},"imp_id":"{}"}})",
                     event.user, event.campaign, to_ms(event.time), event.id);
}

bool WholePath::available() {
  return RedisServer::available() && KafkaBroker::available() && PostgresServer::available();
}

WholePath::WholePath()
    : conninfo(postgres.new_database()),
      producer(kafka.brokers()),
      config_file_(directory_.path() / "updater.json") {
  kafka.create_topic(topic, kPartitions);
  kafka.create_topic(topic + ".dead", 1);
  std::ofstream(config_file_) << fmt::format(
      R"({{
        "kafka": {{"brokers": ["{}"], "topic": "{}", "group_id": "{}",
                  "dead_letter_topic": "{}.dead"}},
        "redis": {{"addresses": ["{}"]}},
        "postgres": {{"conninfo": "{}"}},
        "pipeline": {{"commit_interval": "20ms", "mark_interval": "20ms"}},
        "http": {{"enabled": false}}
      }})",
      kafka.brokers(), topic, topic, topic, redis.address(), conninfo);
}

void WholePath::start_updater() {
  updater_ = std::make_unique<Process>(
      std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config_file_});
}

int WholePath::stop_updater() {
  updater_->send_signal(SIGTERM);
  return updater_->wait();
}

void WholePath::kill_updater() {
  updater_->kill();
}

Finished WholePath::replay(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {FCAP_UPDATER_BINARY, "replay", "--config", config_file_};
  command.insert(command.end(), flags.begin(), flags.end());
  return run(command);
}

Finished WholePath::fcap(std::vector<std::string> words, const std::string& input) {
  words.insert(words.begin(), FCAP_CLI_BINARY);
  for (const std::string& word :
       {std::string("--redis"), redis.address(), std::string("--postgres"), conninfo}) {
    words.push_back(word);
  }
  return run(words, {.environment = {"FCAP_TIMEOUT=30s"}, .input = input});
}

void WholePath::produce(const SeenEvent& event) {
  producer.send(topic, event.user, to_json(event));
  ++produced_;
}

::testing::AssertionResult WholePath::drain(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kAskAgain{20};
  producer.flush();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const std::int64_t committed = kafka.committed_sum(topic, topic, kPartitions);
    if (committed == produced_) return ::testing::AssertionSuccess();
    if (std::chrono::steady_clock::now() >= end) {
      return ::testing::AssertionFailure() << fmt::format(
                 "the updater has committed {} of {} messages in {} s; its log:\n{}", committed,
                 produced_, patience / std::chrono::seconds{1}, updater_log());
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

std::unique_ptr<Checker> WholePath::make_checker() const {
  CheckerOptions options;
  options.redis.addresses = {redis.address()};
  options.rules.postgres = conninfo;
  // On a crowded machine a check may wait its turn; what is tested here is the answer.
  options.deadline = std::chrono::seconds(30);
  return or_throw(Checker::create(std::move(options)));
}

std::string WholePath::updater_log() const {
  return updater_ ? updater_->errors() : std::string("no updater was started");
}

}  // namespace fcap::testing
