#pragma once

#include <memory>

#include <librdkafka/rdkafka.h>

namespace fcap::kafka {

/// librdkafka's C objects, owned. A client is a KafkaClient.
struct Delete {
  void operator()(rd_kafka_conf_t* p) const noexcept { rd_kafka_conf_destroy(p); }
  void operator()(rd_kafka_queue_t* p) const noexcept { rd_kafka_queue_destroy(p); }
  void operator()(rd_kafka_message_t* p) const noexcept { rd_kafka_message_destroy(p); }
  void operator()(rd_kafka_event_t* p) const noexcept { rd_kafka_event_destroy(p); }
  void operator()(rd_kafka_error_t* p) const noexcept { rd_kafka_error_destroy(p); }
  void operator()(rd_kafka_topic_t* p) const noexcept { rd_kafka_topic_destroy(p); }
  void operator()(const rd_kafka_metadata_t* p) const noexcept { rd_kafka_metadata_destroy(p); }
  void operator()(rd_kafka_topic_partition_list_t* p) const noexcept {
    rd_kafka_topic_partition_list_destroy(p);
  }
};

/// Gives up all messages of a producer, as flags of rd_kafka_purge(). By itself that call waits for
/// librdkafka's threads without a bound.
inline constexpr int kPurgeAll =
    RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING;

template <typename T>
using Ptr = std::unique_ptr<T, Delete>;

}  // namespace fcap::kafka
