#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/status.h>
#include <fcap/time.h>

#include "kafka/conf.h"
#include "kafka/kafka_client.h"
#include "kafka/last_error.h"

namespace fcap::kafka {

/// Offsets [from, to) of one partition.
struct OffsetSpan {
  std::int32_t partition = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// A message as it stands in the topic. The views are valid only during the call that hands it
/// over.
struct RangeMessage {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  /// The broker's or the producer's, as the topic is set.
  Instant timestamp;
  std::string_view value;
  /// The value of the header kReasonHeader; empty when there is none.
  std::string_view reason = {};
};

/// Names the header in which a publisher may say why an impression was shown without a look at the
/// user's history: the verdict's Reason as a word, such as "timeout".
inline constexpr const char* kReasonHeader = "fcap_reason";

/// Reads a part of a topic once, in the order of each partition, without a consumer group: it
/// commits nothing and disturbs nobody.
///
/// Not thread-safe.
class RangeReader {
 public:
  using Visit = std::function<void(const RangeMessage&)>;

  /// `answer_within`: the longest wait for an answer to a question about the topic.
  static Result<std::unique_ptr<RangeReader>> open(const ConnectionOptions& connection,
                                                   std::string topic,
                                                   std::chrono::milliseconds answer_within);

  /// All partitions, from the first message there is to the end as it is now.
  Result<std::vector<OffsetSpan>> whole_topic();

  /// Calls `visit` for each message of the spans. Fails when the broker does not answer for 30 s.
  Status read(const std::vector<OffsetSpan>& spans, const Visit& visit);

 private:
  RangeReader(std::string topic, std::chrono::milliseconds answer_within,
              std::shared_ptr<LastError> last_error, KafkaClient client)
      : topic_(std::move(topic)),
        answer_within_(answer_within),
        last_error_(std::move(last_error)),
        client_(std::move(client)) {}
  Result<int> partition_count();
  [[nodiscard]] int answer_ms() const noexcept;
  Status failure(const std::string& what, rd_kafka_resp_err_t code);

  const std::string topic_;
  const std::chrono::milliseconds answer_within_;
  const std::shared_ptr<LastError> last_error_;
  const KafkaClient client_;
};

}  // namespace fcap::kafka
