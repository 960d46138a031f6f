#include "consumer_lag.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <librdkafka/rdkafka.h>

namespace ad_server {
namespace {

constexpr int kTimeoutMs = 1000;

}  // namespace

ConsumerLag::ConsumerLag(const std::string& brokers, std::string topic, const std::string& group)
    : topic_(std::move(topic)) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> text{};
  if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), text.data(), text.size()) !=
          RD_KAFKA_CONF_OK ||
      rd_kafka_conf_set(conf, "group.id", group.c_str(), text.data(), text.size()) !=
          RD_KAFKA_CONF_OK) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(std::string("--brokers or --group: ") + text.data());
  }
  client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text.data(), text.size());
  if (client_ == nullptr) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(std::string("--brokers: ") + text.data());
  }
}

ConsumerLag::~ConsumerLag() {
  rd_kafka_destroy(client_);
}

int ConsumerLag::partition_count() {
  if (partitions_ > 0) return partitions_;
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client_, topic_.c_str(), nullptr);
  const struct rd_kafka_metadata* metadata = nullptr;
  if (rd_kafka_metadata(client_, 0, topic, &metadata, kTimeoutMs) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (metadata->topic_cnt == 1) partitions_ = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
  }
  rd_kafka_topic_destroy(topic);
  return partitions_;
}

std::vector<std::int64_t> ConsumerLag::end_offsets() {
  std::vector<std::int64_t> ends;
  for (int partition = 0; partition < partition_count(); ++partition) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (rd_kafka_query_watermark_offsets(client_, topic_.c_str(), partition, &low, &high,
                                         kTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return {};
    }
    ends.push_back(high);
  }
  return ends;
}

std::optional<std::int64_t> ConsumerLag::messages() {
  const std::vector<std::int64_t> ends = end_offsets();
  if (ends.empty()) return std::nullopt;
  rd_kafka_topic_partition_list_t* committed =
      rd_kafka_topic_partition_list_new(static_cast<int>(ends.size()));
  for (std::size_t i = 0; i < ends.size(); ++i) {
    rd_kafka_topic_partition_list_add(committed, topic_.c_str(), static_cast<std::int32_t>(i));
  }
  std::optional<std::int64_t> lag;
  if (rd_kafka_committed(client_, committed, kTimeoutMs) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    lag = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::int64_t offset = std::max<std::int64_t>(committed->elems[i].offset, 0);
      *lag += std::max<std::int64_t>(ends[i] - offset, 0);
    }
  }
  rd_kafka_topic_partition_list_destroy(committed);
  return lag;
}

}  // namespace ad_server
