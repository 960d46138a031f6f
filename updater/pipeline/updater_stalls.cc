// What the updater waits for when nothing moves on although there are messages.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "updater/pipeline/updater.h"

namespace fcap::updater {
namespace {

using Wait = StallBook::Wait;

// What Kafka's client said before that says nothing about now.
constexpr std::chrono::seconds kWordsCount{60};

std::string first_line(const std::string& lines) {
  return lines.substr(0, lines.find('\n'));
}

}  // namespace

void Updater::report_stalls(Clock::time_point now) {
  const std::map<std::int32_t, std::int64_t> messages = parts_.watch->lag(now).by_partition;
  partitions_->list(offsets_);
  std::vector<StallBook::PartitionPosition> positions;
  positions.reserve(offsets_.size());
  for (const PartitionOffset& at : offsets_) {
    StallBook::PartitionPosition position{at.partition, {}, {}};
    const auto own = partitions_->waits_for(at.partition);
    // Before its mark is confirmed, more may have to be read than the log's end says.
    if (!own || own->wait == Wait::kPlace) position.done = partitions_->low_water(at.partition);
    const auto known = messages.find(at.partition);
    if (known != messages.end()) position.messages = known->second;
    positions.push_back(position);
  }
  stalls_.look(joined_, positions, consumer_->commits_wait_since(), now);
  // Where a topic cannot be read, the watch says why, in the log as well.
  const bool said = parts_.watch->topic(now).unreadable;
  std::vector<StallBook::StallReason> reasons;
  for (const StallBook::Stall& stall : stalls_.stalls(now)) {
    if (said && !stall.partition) continue;
    reasons.push_back({stall, cause_of(stall, now)});
  }
  parts_.health->set_problem(Health::Problem::kProgress, stalls_.tell(reasons, now, parts_.log));
}

StallBook::StallCause Updater::cause_of(const StallBook::Stall& stall,
                                        Clock::time_point now) const {
  if (stall.commits) {
    return {Wait::kCommit, "the group's coordinator is silent" + last_words(now)};
  }
  if (!stall.partition) return {Wait::kAssignment, why_unassigned(now)};
  const std::int32_t partition = *stall.partition;
  if (undecoded_.contains(partition)) {
    return {Wait::kDecoder, "its next message cannot be decoded yet"};
  }
  if (letters_.waiting_partitions().contains(partition)) {
    return {Wait::kDeadLetters, first_line(letters_.trouble())};
  }
  if (auto own = partitions_->waits_for(partition)) return *std::move(own);
  return why_standing(partition, now);
}

// Why a partition that could be read stands still. What is in flight comes before what is not read
// because of it.
StallBook::StallCause Updater::why_standing(std::int32_t partition, Clock::time_point now) const {
  if (writer_.failing()) {
    return {Wait::kRedis, "Redis does not accept events: " + first_line(writer_.trouble())};
  }
  if (writer_.batches_in_flight() > 0) {
    return {Wait::kRedis, "Redis has not acknowledged the events that were sent to it"};
  }
  if (letters_.full() || letters_.first_attempts() > 0) {
    return {Wait::kDeadLetters, "the dead-letter topic has not acknowledged what was sent to it"};
  }
  if (partitions_->checking()) {
    return {Wait::kMark, "it waits until other partitions' marks are confirmed"};
  }
  const auto& errors = consumer_->partition_errors();
  for (const std::int32_t at : {partition, kafka::Consumer::kTopic}) {
    const auto error = errors.find(at);
    if (error != errors.end()) return {Wait::kMessages, error->second.text};
  }
  const std::string kafka = first_line(parts_.watch->trouble(now));
  if (!kafka.empty()) return {Wait::kMessages, kafka};
  return {Wait::kMessages, "Kafka delivers nothing of it" + last_words(now)};
}

std::string Updater::why_unassigned(Clock::time_point now) const {
  const auto& errors = consumer_->partition_errors();
  const auto error = errors.find(kafka::Consumer::kTopic);
  if (error != errors.end()) return error->second.text;
  const std::string group = parts_.watch->group();
  return (group.empty() ? "the group's coordinator has not been asked yet" : group) +
         last_words(now);
}

std::string Updater::last_words(Clock::time_point now) const {
  const std::string words = consumer_->words_since(now - kWordsCount);
  return words.empty() ? words : fmt::format(" (Kafka's client said last: {})", words);
}

}  // namespace fcap::updater
