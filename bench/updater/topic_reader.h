#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kafka/consumer.h"

namespace fcap::bench {

/// The updater's own consumer, with the updater's settings, from the beginning of a topic. Throws
/// when it cannot start or nothing comes for some seconds.
class TopicReader {
 public:
  TopicReader(const std::string& brokers, const std::string& topic, std::size_t batch_messages_max);

  /// The next messages; valid until the next call.
  std::span<rd_kafka_message_t* const> read();
  /// Commits what read() has given so far, without waiting.
  void commit();

 private:
  std::unique_ptr<kafka::Consumer> consumer_;
  kafka::MessageBatch batch_;
  std::vector<kafka::PartitionOffset> next_;
};

}  // namespace fcap::bench
