#include "updater/watch/log_bounds.h"

#include <algorithm>
#include <utility>

#include "kafka/topic_questions.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

// Broker timestamps may be the producers'; an event's own time may be later than its message's.
constexpr std::chrono::hours kTimestampSlack{1};
// By which factor the search for the log's newest message widens.
constexpr int kWider = 4;

using BoundsByPartition = std::map<std::int32_t, Result<LogBounds>>;

class BoundsSearch {
 public:
  BoundsSearch(kafka::TopicQuestions& questions, const std::string& topic,
               std::set<std::int32_t> partitions)
      : questions_(questions), topic_(topic), open_(std::move(partitions)) {}

  BoundsByPartition run(milliseconds retention, Instant now) {
    for (const auto& [partition, offset] : settle(questions_.committed(topic_, open_))) {
      found_[partition].committed = offset;
    }
    for (const auto& [partition, offset] : settle(questions_.beginnings(topic_, open_))) {
      found_[partition].retention_start = offset;
      found_[partition].log_start = offset;
    }
    // If no message is recent enough, the beginning is right, because events that are too old are
    // skipped.
    for (const auto& [partition, offset] : retention_starts(retention, now)) {
      LogBounds& bounds = found_[partition];
      bounds.retention_start = std::max(bounds.retention_start, offset);
    }
    for (const std::int32_t partition : open_) answers_.emplace(partition, found_[partition]);
    return std::move(answers_);
  }

 private:
  // The offsets of the partitions with an answer. The others are settled: they are not queried any
  // more.
  kafka::Offsets settle(const Result<kafka::PartitionAnswers>& answers) {
    if (!answers.ok()) {
      for (const std::int32_t partition : open_) answers_.emplace(partition, answers.status());
      open_.clear();
      return {};
    }
    for (const auto& [partition, status] : answers.value().refused) {
      answers_.emplace(partition, status);
      open_.erase(partition);
    }
    return answers.value().offsets;
  }

  kafka::Offsets retention_starts(milliseconds retention, Instant now) {
    std::set<std::int32_t> searched;
    for (const auto& [partition, end] : settle(questions_.ends(topic_, open_))) {
      if (end > 0) searched.insert(partition);
    }
    std::map<std::int32_t, Instant> wanted;
    for (milliseconds age = kTimestampSlack; !searched.empty() && age < retention; age *= kWider) {
      std::map<std::int32_t, Instant> times;
      for (const std::int32_t partition : searched) times[partition] = now - age;
      const auto newer = settle(questions_.first_since(topic_, times));
      std::erase_if(searched, [&](std::int32_t partition) {
        if (!open_.contains(partition)) return true;
        if (!newer.contains(partition)) return false;
        wanted[partition] = now - (age + retention + kTimestampSlack);
        return true;
      });
    }
    std::erase_if(wanted, [this](const auto& at) { return !open_.contains(at.first); });
    return settle(questions_.first_since(topic_, wanted));
  }

  kafka::TopicQuestions& questions_;
  const std::string& topic_;
  std::set<std::int32_t> open_;
  std::map<std::int32_t, LogBounds> found_;
  BoundsByPartition answers_;
};

}  // namespace

BoundsByPartition find_log_bounds(kafka::TopicQuestions& questions, const std::string& topic,
                                  std::set<std::int32_t> partitions, milliseconds retention,
                                  Instant now) {
  return BoundsSearch(questions, topic, std::move(partitions)).run(retention, now);
}

void BoundsBook::ask(std::span<const kafka::TopicPartition> partitions) {
  for (const kafka::TopicPartition partition : partitions) {
    Question& question = questions_[partition];
    question.number = ++asked_;
    question.answer.reset();
    waiting_[partition] = question.number;
  }
}

BoundsBook::Waiting BoundsBook::take_waiting() {
  return std::exchange(waiting_, {});
}

void BoundsBook::settle(const Waiting& taken, LogBoundsAnswers answers) {
  for (auto& [partition, answer] : answers) {
    const auto number = taken.find(partition);
    if (number == taken.end()) continue;
    Question& question = questions_[partition];
    if (question.number == number->second) question.answer = std::move(answer);
  }
}

std::optional<Result<LogBounds>> BoundsBook::answer(kafka::TopicPartition partition) const {
  const auto question = questions_.find(partition);
  return question == questions_.end() ? std::nullopt : question->second.answer;
}

}  // namespace fcap::updater
