#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct rd_kafka_s;

namespace ad_server {

/// Asks the broker how far the updater's consumer group has come.
class ConsumerLag {
 public:
  ConsumerLag(const std::string& brokers, std::string topic, const std::string& group);
  ~ConsumerLag();
  ConsumerLag(const ConsumerLag&) = delete;
  ConsumerLag& operator=(const ConsumerLag&) = delete;

  /// Messages in the topic that the group has not committed yet; nothing when the broker does not
  /// answer within a second.
  [[nodiscard]] std::optional<std::int64_t> messages();

  /// The offset behind each partition's last message; empty when the broker does not answer.
  [[nodiscard]] std::vector<std::int64_t> end_offsets();

 private:
  [[nodiscard]] int partition_count();

  std::string topic_;
  rd_kafka_s* client_ = nullptr;
  int partitions_ = 0;
};

}  // namespace ad_server
