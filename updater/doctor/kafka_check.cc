#include <chrono>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kafka/topic_questions.h"
#include "kafka/write_probe.h"
#include "updater/doctor/server_checks.h"
#include "updater/options/libraries.h"
#include "updater/watch/log_settings.h"

namespace fcap::updater {
namespace {

class KafkaDoctor {
 public:
  KafkaDoctor(const Settings& settings, kafka::TopicQuestions& questions, Findings& findings)
      : settings_(settings), questions_(questions), findings_(findings) {}

  void look() {
    const auto state = questions_.topic(settings_.kafka.topic);
    if (state.status().code() == StatusCode::kRefused) {
      return say(Level::kError,
                 fmt::format("Kafka does not accept the account: correct kafka.sasl_password_file, "
                             "or sasl.username and sasl.mechanism in kafka.properties ({})",
                             state.status().text()));
    }
    if (!state.ok() && questions_.fault() == kafka::Fault::kEncryption) {
      return say(Level::kError,
                 fmt::format("kafka.properties or kafka.brokers do not fit the broker's encryption "
                             "or certificate: correct what is named last ({})",
                             state.status().text()));
    }
    if (!state.ok()) {
      return say(Level::kError, fmt::format("no broker answers: correct kafka.brokers, or start "
                                            "Kafka ({})",
                                            state.status().text()));
    }
    const std::string& topic = settings_.kafka.topic;
    if (exists({"kafka.topic", topic, "create it", "read it"}, state.value())) {
      look_at_topic(state.value());
      look_at_group(questions_, settings_.kafka.group_id, Level::kError, "");
      look_at_group_of_replay();
    }
    look_at_dead_letters();
  }

 private:
  using Level = Finding::FindingLevel;

  void say(Level level, std::string text) {
    findings_.push_back({level, "kafka", std::move(text)});
  }
  // A topic, and what to do where it is missing or the account may not see it.
  struct Needed {
    std::string_view setting;
    const std::string& topic;
    std::string_view when_missing;
    std::string_view right;
  };
  bool exists(const Needed& needed, const kafka::TopicState& state);
  void look_at_topic(const kafka::TopicState& state);
  void look_at_group(kafka::TopicQuestions& questions, const std::string& group, Level level,
                     std::string_view who);
  void look_at_group_of_replay();
  void look_at_dead_letters();

  const Settings& settings_;
  kafka::TopicQuestions& questions_;
  Findings& findings_;
};

bool KafkaDoctor::exists(const Needed& needed, const kafka::TopicState& state) {
  if (state.missing()) {
    say(Level::kError, fmt::format("{}: the topic {} does not exist: {}", needed.setting,
                                   needed.topic, needed.when_missing));
    return false;
  }
  if (!state.ok()) {
    say(Level::kError, fmt::format("{}: allow the account to {}, see \"Accounts\" in "
                                   "docs/operations.md ({}: {})",
                                   needed.setting, needed.right, needed.topic, state.error()));
    return false;
  }
  if (!state.without_leader.empty()) {
    say(Level::kError,
        fmt::format("{}: {} of {} partitions of {} have no leader: start the "
                    "brokers that hold them",
                    needed.setting, state.without_leader.size(), state.partitions, needed.topic));
  }
  return true;
}

void KafkaDoctor::look_at_topic(const kafka::TopicState& state) {
  const std::string& topic = settings_.kafka.topic;
  say(Level::kOk, fmt::format("topic {} has {} partitions", topic, state.partitions));
  std::set<std::int32_t> partitions;
  for (int i = 0; i < state.partitions; ++i) {
    if (!state.without_leader.contains(i)) partitions.insert(i);
  }
  if (const auto readable = questions_.try_reading(topic, partitions); !readable.ok()) {
    say(Level::kError, fmt::format("topic {} cannot be read: allow the account to read it ({})",
                                   topic, readable.text()));
  }
  const auto about = questions_.settings(topic);
  if (!about.ok()) {
    return say(Level::kWarning,
               fmt::format("topic {}: its retention is unknown: allow the account to describe its "
                           "configuration, or compare retention.ms with ledger.retention yourself "
                           "({})",
                           topic, about.status().text()));
  }
  const auto found = log_retention_findings(topic, about.value(), settings_.ledger.retention);
  for (const std::string& line : found) say(Level::kError, line);
  if (found.empty()) say(Level::kOk, fmt::format("topic {} keeps events long enough", topic));
}

void KafkaDoctor::look_at_group(kafka::TopicQuestions& questions, const std::string& group,
                                Level level, std::string_view who) {
  Status status = questions.committed(settings_.kafka.topic, {0}).status();
  if (status.ok()) status = questions.try_committing(settings_.kafka.topic);
  if (status.ok()) return;
  say(level, fmt::format("group {}{}: allow the account to read the group ({})", group, who,
                         status.text()));
}

void KafkaDoctor::look_at_group_of_replay() {
  const std::string group = replay_group(settings_.kafka);
  auto questions =
      kafka::TopicQuestions::open(kafka_connection(settings_.kafka), group, kKafkaAnswersWithin);
  if (!questions.ok()) return say(Level::kError, questions.status().text());
  look_at_group(*questions.value(), group, Level::kWarning, ", which replay uses");
}

void KafkaDoctor::look_at_dead_letters() {
  const std::string& topic = settings_.kafka.dead_letter_topic;
  if (topic.empty()) {
    return say(Level::kWarning,
               "kafka.dead_letter_topic is empty: messages that are not events are dropped");
  }
  const auto state = questions_.topic(topic);
  if (!state.ok()) return say(Level::kError, state.status().text());
  const Needed needed{"kafka.dead_letter_topic", topic,
                      "create it, or set it to \"\" to drop messages that are not events",
                      "write to it"};
  if (!exists(needed, state.value())) return;
  const auto writable =
      kafka::try_writing(kafka_connection(settings_.kafka), topic, kKafkaAnswersWithin);
  if (writable.ok()) return say(Level::kOk, fmt::format("topic {} can be written to", topic));
  say(Level::kError,
      fmt::format("kafka.dead_letter_topic: topic {} cannot be written to: allow the account to "
                  "write to it ({})",
                  topic, writable.text()));
}

}  // namespace

void check_kafka_cluster(const Settings& settings, Findings& findings) {
  auto questions = kafka::TopicQuestions::open(kafka_connection(settings.kafka),
                                               settings.kafka.group_id, kKafkaAnswersWithin);
  if (!questions.ok()) {
    findings.push_back({Finding::FindingLevel::kError, "kafka", questions.status().text()});
    return;
  }
  KafkaDoctor(settings, *questions.value(), findings).look();
}

}  // namespace fcap::updater
