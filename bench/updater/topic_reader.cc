#include "updater/topic_reader.h"

#include <stdexcept>

#include <unistd.h>

namespace fcap::bench {
namespace {

constexpr std::chrono::milliseconds kAnswer{10'000};
constexpr std::chrono::milliseconds kMoreWait{5};  // the updater's batch_wait

}  // namespace

TopicReader::TopicReader(const std::string& brokers, const std::string& topic,
                         std::size_t batch_messages_max)
    : batch_(batch_messages_max) {
  updater::ConsumerOptions options;
  options.connection.brokers = brokers;
  options.topic = topic;
  options.group_id = "bench-" + std::to_string(getpid());
  auto made = updater::KafkaConsumer::create(options, metrics_, {});
  if (!made.ok()) throw std::runtime_error(made.status().text());
  consumer_ = std::move(made).value();
  const auto partitions = consumer_->partition_count(kAnswer);
  if (!partitions.ok()) throw std::runtime_error(partitions.status().text());
  for (std::int32_t p = 0; p < partitions.value(); ++p) {
    next_.push_back({p, updater::PartitionOffset::kBeginning});
  }
  const Status assigned = consumer_->assign(next_);
  if (!assigned.ok()) throw std::runtime_error(assigned.text());
}

std::span<rd_kafka_message_t* const> TopicReader::read() {
  batch_.clear();
  (void)consumer_->poll(batch_, kAnswer, kMoreWait);
  if (batch_.messages().empty()) throw std::runtime_error("nothing comes from the topic");
  for (const rd_kafka_message_t* message : batch_.messages()) {
    next_[static_cast<std::size_t>(message->partition)].offset = message->offset + 1;
  }
  return batch_.messages();
}

void TopicReader::commit() {
  std::vector<updater::PartitionOffset> known;
  for (const updater::PartitionOffset& at : next_) {
    if (at.offset > 0) known.push_back(at);
  }
  consumer_->commit_async(known);
}

}  // namespace fcap::bench
