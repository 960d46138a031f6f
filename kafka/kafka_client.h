#pragma once

#include <chrono>
#include <memory>

#include <fcap/status.h>

#include "kafka/handles.h"

namespace fcap::kafka {

/// A client of librdkafka, owned. Its end takes a bounded time. librdkafka itself waits for all of
/// its threads, one of which may be waiting for the system's resolver to look a broker's name up,
/// or, after a topic was deleted, for something that never comes (2.0.2). So a thread of its own
/// ends the client, and may be left behind.
///
/// Thread safety: as librdkafka's; one thread ends it.
class KafkaClient {
 public:
  /// How long a destructor waits for librdkafka.
  static constexpr std::chrono::seconds kEndsWithin{2};

  /// Fails on properties that do not fit each other. Connects to nobody yet. `kept` is what the
  /// callbacks of `conf` use: it lives until librdkafka has ended, which may be after this object.
  static Result<KafkaClient> create(rd_kafka_type_t type, Ptr<rd_kafka_conf_t> conf,
                                    std::shared_ptr<void> kept = {});

  KafkaClient() = default;
  /// Ends the client and waits for librdkafka, for kEndsWithin at most.
  ~KafkaClient();
  KafkaClient(KafkaClient&& other) noexcept;
  KafkaClient& operator=(KafkaClient&& other) noexcept;

  /// Null: none was made, or it has been ended.
  [[nodiscard]] rd_kafka_t* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Ends the client without leaving its group, and waits for librdkafka, for `patience` at most.
  /// All messages, queues and topics of the client must be gone.
  void end(std::chrono::milliseconds patience);

  /// Whether librdkafka has not ended some client of this process. Its threads go on, and use what
  /// exit() destroys, so the process must end with _exit(). Any thread.
  [[nodiscard]] static bool is_left_behind() noexcept;

 private:
  KafkaClient(rd_kafka_t* handle, std::shared_ptr<void> kept) noexcept;

  rd_kafka_t* handle_ = nullptr;
  std::shared_ptr<void> kept_;
};

}  // namespace fcap::kafka
