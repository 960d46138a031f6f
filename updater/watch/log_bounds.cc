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
// So many messages before the retention's start are looked at. One might be no event, or no message
// at all (a transaction's marker).
constexpr std::int64_t kLookedAt = 100;
// A log that cannot be looked at begins as Kafka says. A look that succeeds saves reading, or finds
// what producers did wrong.
constexpr int kLooksMax = 3;

class BoundsSearch {
 public:
  BoundsSearch(kafka::TopicQuestions& questions, const std::string& topic,
               std::set<std::int32_t> partitions, MissedLooks& missed)
      : questions_(questions), topic_(topic), open_(std::move(partitions)), missed_(missed) {}

  LogBoundsAnswers run(milliseconds retention, Instant now, const NewestEvent& newest_event) {
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
    look_at_starts(now - retention, newest_event);
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
    ends_ = settle(questions_.ends(topic_, open_));
    for (const auto& [partition, end] : ends_) {
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
        retention_since_[partition] = now - (age + retention);
        return true;
      });
    }
    std::erase_if(wanted, [this](const auto& at) { return !open_.contains(at.first); });
    return settle(questions_.first_since(topic_, wanted));
  }

  // Looks at what comes before the retention, and at how the log begins if it does not reach so far
  // back.
  void look_at_starts(Instant oldest, const NewestEvent& newest_event) {
    kafka::Offsets from;
    for (const std::int32_t partition : open_) {
      LogBounds& bounds = found_[partition];
      if (bounds.retention_start > bounds.log_start) {
        if (!newest_event) continue;
        from[partition] = std::max(bounds.log_start, bounds.retention_start - kLookedAt);
      } else if (bounds.log_start > 0) {
        bounds.gone_before = Instant::max();
        if (ends_.contains(partition) && ends_.at(partition) > bounds.log_start) {
          from[partition] = bounds.log_start;
        }
      }
    }
    const auto take = [&](const kafka::TopicQuestions::ReadMessage& read) {
      return looked_at(read, oldest, newest_event);
    };
    const auto looked = questions_.read_from(topic_, from, take, [] { return false; });
    for (const auto& [partition, offset] : from) {
      LogBounds& bounds = found_[partition];
      if (bounds.misdated) bounds.retention_start = bounds.log_start;
      if (looked.contains(partition) || ++missed_[partition] >= kLooksMax) {
        missed_.erase(partition);
        continue;
      }
      answers_.emplace(partition, Status::error(StatusCode::kUnavailable,
                                                "its messages do not come in time", true));
      open_.erase(partition);
    }
  }

  // Whether no later message is of interest.
  bool looked_at(const kafka::TopicQuestions::ReadMessage& read, Instant oldest,
                 const NewestEvent& newest_event) {
    LogBounds& bounds = found_[read.partition];
    const auto event = newest_event ? newest_event(read.payload) : std::nullopt;
    if (bounds.gone_before) {
      const auto newest = std::max(event, read.time);
      if (newest) bounds.gone_before = newest;
      const auto since = retention_since_.find(read.partition);
      if (newest && *newest < (since == retention_since_.end() ? oldest : since->second)) {
        bounds.gone_before.reset();
      }
      return true;
    }
    if (read.offset >= bounds.retention_start) return true;
    if (event && *event >= retention_since_[read.partition]) {
      bounds.misdated = true;
      // Kafka deletes by its own timestamps, so some may be gone.
      if (bounds.log_start > 0) bounds.gone_before = event;
      return true;
    }
    return read.offset + 1 >= bounds.retention_start;
  }

  kafka::TopicQuestions& questions_;
  const std::string& topic_;
  std::set<std::int32_t> open_;
  MissedLooks& missed_;
  kafka::Offsets ends_;
  std::map<std::int32_t, Instant> retention_since_;  // by the log's own clock
  std::map<std::int32_t, LogBounds> found_;
  LogBoundsAnswers answers_;
};

}  // namespace

LogBoundsAnswers find_log_bounds(kafka::TopicQuestions& questions, const std::string& topic,
                                 std::set<std::int32_t> partitions, milliseconds retention,
                                 Instant now, const NewestEvent& newest_event,
                                 MissedLooks& missed) {
  return BoundsSearch(questions, topic, std::move(partitions), missed)
      .run(retention, now, newest_event);
}

void BoundsBook::ask(std::span<const std::int32_t> partitions) {
  for (const std::int32_t partition : partitions) {
    BoundsQuestion& question = questions_[partition];
    question.number = ++asked_;
    question.answer.reset();
    waiting_[partition] = question.number;
  }
}

BoundsBook::Waiting BoundsBook::take_waiting() {
  return std::exchange(waiting_, {});
}

void BoundsBook::settle(const Waiting& taken, const LogBoundsAnswers& answers) {
  for (const auto& [partition, answer] : answers) {
    const auto number = taken.find(partition);
    if (number == taken.end()) continue;
    BoundsQuestion& question = questions_[partition];
    if (question.number == number->second) question.answer = answer;
  }
}

std::optional<Result<LogBounds>> BoundsBook::answer(std::int32_t partition) const {
  const auto question = questions_.find(partition);
  return question == questions_.end() ? std::nullopt : question->second.answer;
}

}  // namespace fcap::updater
