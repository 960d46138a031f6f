// What the updater reports about itself: in /readyz, in the metrics, and in the log.
#include <utility>

#include <fmt/format.h>

#include "updater/pipeline/updater.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kLookInterval{500};  // at Kafka's state, and at the clocks
constexpr std::chrono::hours kExpiryDoubt{1};  // a clock that is ahead by less expires little

}  // namespace

void Updater::report_health(Clock::time_point now) {
  if (parts_.health == nullptr) return;
  parts_.health->beat(now);
  parts_.health->set_assigned(joined_);
  using Problem = Health::Problem;
  const auto tell = [this](Problem kind, bool failing, std::string_view what) {
    parts_.health->set_problem(kind, failing ? what : std::string_view{});
  };
  tell(Problem::kMarks, partitions_->failing(), partitions_->trouble());
  tell(Problem::kWrites, writer_.failing(),
       writer_.failing() ? "Redis does not accept events: " + writer_.trouble() : std::string());
  tell(Problem::kDeadLetters, letters_.failing(), letters_.trouble());
  parts_.health->set_problem(Problem::kRejections, rejections_.trouble(now));
  if (now >= look_due_) {
    look_due_ = now + kLookInterval;
    look_for_silence(now);
    report_partitions(now);
    report_stalls(now);
    compare_clocks();
  }
}

void Updater::compare_clocks() {
  const auto difference = parts_.redis_clock ? parts_.redis_clock() : std::nullopt;
  if (!difference) return;
  clock_known_ = true;
  redis_ahead_ = *difference;
  const bool differ = std::chrono::abs(redis_ahead_) > options_.intake.future_allowed;
  const std::string what =
      fmt::format("the clock of Redis is {} s ahead of this machine's: synchronize both (NTP)",
                  std::chrono::floor<std::chrono::seconds>(redis_ahead_).count());
  if (parts_.health != nullptr) {
    parts_.health->set_problem(Health::Problem::kClocks, differ ? what : std::string());
  }
  if (differ != clocks_differ_ && parts_.log) {
    if (differ) parts_.log(LogLevel::kError, what);
    if (!differ) parts_.log(LogLevel::kInfo, "the clocks of Redis and of this machine agree again");
  }
  clocks_differ_ = differ;
  if (redis_ahead_ > kExpiryDoubt) {
    expiries_doubted_ = true;
  } else if (expiries_doubted_ && !differ) {
    expiries_doubted_ = false;
    if (parts_.log) {
      parts_.log(LogLevel::kWarning,
                 "while the clock of Redis was ahead, records may have expired too early: reading "
                 "again from the start of retention");
    }
    metrics_->mark_losses.add();
    writer_.forget_known();
    partitions_->doubt_all();
  }
}

void Updater::report_partitions(Clock::time_point now) {
  const TopicWatch::TopicLook topic = parts_.watch->topic(now);
  // The watch reports what it has found out about the topic; this adds the consumer's other errors.
  if (!topic.unreadable) consumer_->forget_passed_errors(topic.at, topic.without_leader);
  partitions_->list(offsets_);
  std::set<std::int32_t> unreadable;
  for (const PartitionOffset& at : offsets_) {
    if (topic.without_leader.contains(at.partition)) unreadable.insert(at.partition);
  }
  bool all = topic.unreadable;
  std::string lines;
  for (const auto& [partition, error] : consumer_->partition_errors()) {
    if (topic.unreadable || topic.without_leader.contains(partition)) continue;
    const bool of_topic = partition == kafka::Consumer::kTopic;
    all = all || of_topic;
    unreadable.insert(partition);
    if (!lines.empty()) lines += '\n';
    lines += of_topic ? fmt::format("topic {}: {}", options_.consumer.topic, error.text)
                      : fmt::format("partition {}: {}", partition, error.text);
  }
  const std::size_t count = all ? offsets_.size() : unreadable.size();
  metrics_->unreadable_partitions.set(static_cast<std::int64_t>(count));
  parts_.health->set_problem(Health::Problem::kPartitions, lines);
}

}  // namespace fcap::updater
