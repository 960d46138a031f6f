#include "updater/pipeline/health_report.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

using Wait = StallBook::Wait;

// What Kafka's client said before that says nothing about now.
constexpr std::chrono::seconds kWordsCount{60};

std::string first_line(const std::string& lines) {
  return lines.substr(0, lines.find('\n'));
}

}  // namespace

void HealthReport::beat(Clock::time_point now, bool joined) {
  parts_.health->beat(now);
  parts_.health->set_assigned(joined);
  using Problem = Health::Problem;
  const auto tell = [this](Problem kind, bool failing, std::string_view what) {
    parts_.health->set_problem(kind, failing ? what : std::string_view{});
  };
  tell(Problem::kMarks, parts_.partitions->failing(), parts_.partitions->trouble());
  tell(Problem::kWrites, parts_.writer->failing(),
       parts_.writer->failing() ? "Redis does not accept events: " + parts_.writer->trouble()
                                : std::string());
  tell(Problem::kDeadLetters, parts_.letters->failing(), parts_.letters->trouble());
  parts_.health->set_problem(Problem::kRejections, parts_.rejections->trouble(now));
  parts_.health->set_problem(Problem::kClocks, parts_.clocks->trouble());
}

void HealthReport::look(Clock::time_point now, bool joined) {
  report_partitions(now);
  report_stalls(now, joined);
}

void HealthReport::report_partitions(Clock::time_point now) {
  const TopicWatch::TopicLook topic = parts_.watch->topic(now);
  // The watch reports what it has found out about the topic; this adds the consumer's other errors.
  if (!topic.unreadable) parts_.consumer->forget_passed_errors(topic.at, topic.without_leader);
  parts_.partitions->list(offsets_);
  std::set<std::int32_t> unreadable;
  for (const PartitionOffset& at : offsets_) {
    if (topic.without_leader.contains(at.partition)) unreadable.insert(at.partition);
  }
  bool all = topic.unreadable;
  std::string lines;
  for (const auto& [partition, error] : parts_.consumer->partition_errors()) {
    if (topic.unreadable || topic.without_leader.contains(partition)) continue;
    const bool of_topic = partition == kafka::Consumer::kTopic;
    all = all || of_topic;
    unreadable.insert(partition);
    if (!lines.empty()) lines += '\n';
    lines += of_topic ? fmt::format("topic {}: {}", topic_, error.text)
                      : fmt::format("partition {}: {}", partition, error.text);
  }
  const std::size_t count = all ? offsets_.size() : unreadable.size();
  metrics_->unreadable_partitions.set(static_cast<std::int64_t>(count));
  parts_.health->set_problem(Health::Problem::kPartitions, lines);
}

void HealthReport::report_stalls(Clock::time_point now, bool joined) {
  const std::map<std::int32_t, std::int64_t> messages = parts_.watch->lag(now).by_partition;
  parts_.partitions->list(offsets_);
  std::vector<StallBook::PartitionPosition> positions;
  positions.reserve(offsets_.size());
  for (const PartitionOffset& at : offsets_) {
    StallBook::PartitionPosition position{at.partition, {}, {}};
    const auto own = parts_.partitions->waits_for(at.partition);
    // Before its mark is confirmed, more may have to be read than the log's end says.
    if (!own || own->wait == Wait::kPlace)
      position.done = parts_.partitions->low_water(at.partition);
    const auto known = messages.find(at.partition);
    if (known != messages.end()) position.messages = known->second;
    positions.push_back(position);
  }
  stalls_.look(joined, positions, parts_.consumer->commits_wait_since(), now);
  // Where a topic cannot be read, the watch says why, in the log as well.
  const bool said = parts_.watch->topic(now).unreadable;
  std::vector<StallBook::StallReason> reasons;
  for (const StallBook::Stall& stall : stalls_.stalls(now)) {
    if (said && !stall.partition) continue;
    reasons.push_back({stall, cause_of(stall, now)});
  }
  parts_.health->set_problem(Health::Problem::kProgress, stalls_.tell(reasons, now, log_));
}

StallBook::StallCause HealthReport::cause_of(const StallBook::Stall& stall,
                                             Clock::time_point now) const {
  if (stall.commits) {
    return {Wait::kCommit, "the group's coordinator is silent" + last_words(now)};
  }
  if (!stall.partition) return {Wait::kAssignment, why_unassigned(now)};
  const std::int32_t partition = *stall.partition;
  if (parts_.reading->awaits_decoder(partition)) {
    return {Wait::kDecoder, "its next message cannot be decoded yet"};
  }
  if (parts_.letters->waiting_partitions().contains(partition)) {
    return {Wait::kDeadLetters, first_line(parts_.letters->trouble())};
  }
  if (auto own = parts_.partitions->waits_for(partition)) return *std::move(own);
  return why_standing(partition, now);
}

// Why a partition that could be read stands still. What is in flight comes before what is not read
// because of it.
StallBook::StallCause HealthReport::why_standing(std::int32_t partition,
                                                 Clock::time_point now) const {
  if (parts_.writer->failing()) {
    return {Wait::kRedis, "Redis does not accept events: " + first_line(parts_.writer->trouble())};
  }
  if (parts_.writer->batches_in_flight() > 0) {
    return {Wait::kRedis, "Redis has not acknowledged the events that were sent to it"};
  }
  if (parts_.letters->full() || parts_.letters->first_attempts() > 0) {
    return {Wait::kDeadLetters, "the dead-letter topic has not acknowledged what was sent to it"};
  }
  if (parts_.partitions->checking()) {
    return {Wait::kMark, "it waits until other partitions' marks are confirmed"};
  }
  const auto& errors = parts_.consumer->partition_errors();
  for (const std::int32_t at : {partition, kafka::Consumer::kTopic}) {
    const auto error = errors.find(at);
    if (error != errors.end()) return {Wait::kMessages, error->second.text};
  }
  const std::string kafka = first_line(parts_.watch->trouble(now));
  if (!kafka.empty()) return {Wait::kMessages, kafka};
  return {Wait::kMessages, "Kafka delivers nothing of it" + last_words(now)};
}

std::string HealthReport::why_unassigned(Clock::time_point now) const {
  const auto& errors = parts_.consumer->partition_errors();
  const auto error = errors.find(kafka::Consumer::kTopic);
  if (error != errors.end()) return error->second.text;
  const std::string group = parts_.watch->group();
  return (group.empty() ? "the group's coordinator has not been asked yet" : group) +
         last_words(now);
}

std::string HealthReport::last_words(Clock::time_point now) const {
  const std::string words = parts_.consumer->words_since(now - kWordsCount);
  return words.empty() ? words : fmt::format(" (Kafka's client said last: {})", words);
}

}  // namespace fcap::updater
