#include "updater/pipeline/topic_reading.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskDecoderAgain{200};
constexpr milliseconds kPlaceAgain{200};

}  // namespace

void TopicReading::await_decoder(std::int32_t partition, Clock::time_point now) {
  undecoded_[partition] = now + kAskDecoderAgain;
}

void TopicReading::hold(std::set<std::int32_t> waiting, Clock::time_point now) {
  // Each is held at least once, because that sets it back to the message.
  std::erase_if(undecoded_,
                [&](const auto& at) { return at.second <= now && held_.contains(at.first); });
  for (const auto& [partition, again] : undecoded_) waiting.insert(partition);
  if (waiting == held_) return;
  offsets_.clear();
  for (const std::int32_t partition : waiting) {
    if (held_.contains(partition)) continue;
    partitions_->hold(partition, true);
    offsets_.push_back({partition, PartitionOffset::kNone});
  }
  consumer_->pause(offsets_);
  offsets_.clear();
  for (const std::int32_t partition : held_) {
    if (waiting.contains(partition)) continue;
    partitions_->hold(partition, false);
    if (!paused_) offsets_.push_back({partition, PartitionOffset::kNone});
  }
  consumer_->resume(offsets_);
  held_ = std::move(waiting);
  metrics_->waiting_partitions.set(static_cast<std::int64_t>(held_.size()));
}

void TopicReading::revoked(std::span<const PartitionOffset> partitions) {
  for (const PartitionOffset& at : partitions) {
    undecoded_.erase(at.partition);
    held_.erase(at.partition);
  }
  metrics_->waiting_partitions.set(static_cast<std::int64_t>(held_.size()));
}

bool TopicReading::pause_if_due(Clock::time_point now) {
  if (held_since_ == Clock::time_point{}) held_since_ = now;
  if (paused_ || now - held_since_ < pause_after_) return paused_;
  paused_ = true;
  metrics_->pauses.add();
  partitions_->list(offsets_);
  metrics_->paused_partitions.set(static_cast<std::int64_t>(offsets_.size()));
  consumer_->pause(offsets_);
  return true;
}

void TopicReading::resume(Clock::time_point now) {
  held_since_ = {};
  if (paused_) {
    partitions_->list(offsets_);
    std::erase_if(offsets_, [this](const auto& at) { return partitions_->held(at.partition); });
    consumer_->resume(offsets_);
    partitions_->seek_all_again();
    paused_ = false;
    metrics_->paused_partitions.set(0);
  }
  place_partitions(now);
}

// Partitions that cannot be placed now are retried, while the others are read and Kafka's
// callbacks are served: a callback may take the partition away.
void TopicReading::place_partitions(Clock::time_point now) {
  partitions_->to_place(offsets_);
  if (offsets_.empty() || now < place_due_) return;
  failed_.clear();
  const bool seekable = std::ranges::all_of(
      offsets_, [this](const PartitionOffset& at) { return consumer_->begun(at.partition); });
  if (seekable && !assign_again_) {
    consumer_->seek(offsets_, failed_);
  } else {
    place_from_scratch();
  }
  for (const PartitionOffset& at : offsets_) {
    if (std::ranges::find(failed_, at.partition) == failed_.end())
      partitions_->placed(at.partition);
  }
  place_due_ = failed_.empty() ? Clock::time_point{} : now + kPlaceAgain;
}

// Assigns the partitions once more, each where its reading is.
void TopicReading::place_from_scratch() {
  assign_again_ = false;
  // All of them: a partition that is not assigned together with the others is no longer read.
  partitions_->seek_all_again();
  partitions_->to_place(offsets_);
  // A pause outlives the assignment that it was made in, and librdkafka may have one that the
  // updater does not know of.
  consumer_->resume(offsets_);
  const Status status = consumer_->assign(offsets_);
  if (status.ok()) return;
  for (const PartitionOffset& at : offsets_) {
    failed_.push_back(at.partition);
    consumer_->note_unreadable(at.partition, status.text());
  }
}

void TopicReading::look_for_silence(const LagBook::Offsets& ends, Clock::time_point now) {
  std::vector<SilenceBook::Reading> reading;
  if (!paused_) {
    partitions_->list(offsets_);
    for (const PartitionOffset& at : offsets_) {
      const auto next = partitions_->awaited(at.partition);
      const auto end = ends.find(at.partition);
      if (next && end != ends.end()) reading.push_back({at.partition, *next, end->second});
    }
  }
  silence_.set_reading(reading, now);
  const auto& errors = consumer_->partition_errors();
  for (const std::int32_t partition : silence_.silent(now)) {
    // Kafka's own words say more.
    if (errors.contains(partition) || errors.contains(kafka::Consumer::kTopic)) continue;
    consumer_->note_unreadable(partition,
                               "has delivered no message for several seconds although its log has "
                               "some; the updater assigns it again");
  }
  if (!silence_.take_remedy(now)) return;
  assign_again_ = true;
  partitions_->seek_all_again();
}

}  // namespace fcap::updater
