#include "updater/topic_reader.h"

#include <chrono>
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
  kafka::ConsumerOptions options;
  options.connection.brokers = brokers;
  options.topics = {topic};
  options.group_id = "bench-" + std::to_string(getpid());
  auto made = kafka::Consumer::create(options, {}, {});
  if (!made.ok()) throw std::runtime_error(made.status().text());
  consumer_ = std::move(made).value();
  const auto partitions = consumer_->partition_count({}, kAnswer);
  if (!partitions.ok()) throw std::runtime_error(partitions.status().text());
  for (std::int32_t p = 0; p < partitions.value(); ++p) {
    next_.push_back({{{}, p}, kafka::PartitionOffset::kBeginning});
  }
  const Status assigned = consumer_->assign(next_);
  if (!assigned.ok()) throw std::runtime_error(assigned.text());
}

std::span<rd_kafka_message_t* const> TopicReader::read() {
  const auto until = std::chrono::steady_clock::now() + kAnswer;
  // A poll may give nothing but the news that some partition has ended.
  do {
    (void)consumer_->poll(batch_, kAnswer, kMoreWait);
  } while (batch_.messages().empty() && std::chrono::steady_clock::now() < until);
  if (batch_.messages().empty()) throw std::runtime_error("nothing comes from the topic");
  for (const rd_kafka_message_t* message : batch_.messages()) {
    next_[static_cast<std::size_t>(message->partition)].offset = message->offset + 1;
  }
  return batch_.messages();
}

void TopicReader::commit() {
  std::vector<kafka::PartitionOffset> known;
  for (const kafka::PartitionOffset& at : next_) {
    if (at.offset > 0) known.push_back(at);
  }
  consumer_->commit_async(known);
}

}  // namespace fcap::bench
