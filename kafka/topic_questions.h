#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/status.h>
#include <fcap/time.h>

#include "kafka/conf.h"
#include "kafka/connection_advice.h"
#include "kafka/kafka_client.h"
#include "kafka/last_error.h"

namespace fcap::kafka {

/// An offset for each partition.
using Offsets = std::map<std::int32_t, std::int64_t>;

/// What a cluster answered for each partition. One that is in neither has no such offset.
struct PartitionAnswers {
  Offsets offsets;
  std::map<std::int32_t, Status> refused;  ///< that were answered with an error
};

/// What a cluster says of a topic.
struct TopicState {
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;  ///< what is wrong with the topic itself
  int partitions = 0;
  std::set<std::int32_t> without_leader;

  [[nodiscard]] bool ok() const noexcept { return code == RD_KAFKA_RESP_ERR_NO_ERROR; }
  [[nodiscard]] std::string error() const;  ///< `code` for people
  [[nodiscard]] bool missing() const noexcept {
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  }
};

/// Asks a cluster about topics, their ends and their settings, without joining a group: it commits
/// nothing and disturbs nobody. Each question waits for its answer, for at most `answer_within`;
/// a status that is not ok means that there was none, with the client's words.
///
///     auto questions = TopicQuestions::open(connection, "fcap-updater", 3s);
///     auto state = questions.value()->topic("impressions");
///
/// Thread safety: one thread, but for answered().
class TopicQuestions {
 public:
  /// Fails on a property that librdkafka does not know; connects to nobody yet. `group_id` is the
  /// group whose committed offsets can be asked for.
  static Result<std::unique_ptr<TopicQuestions>> open(const ConnectionOptions& connection,
                                                      const std::string& group_id,
                                                      std::chrono::milliseconds answer_within);
  /// Never creates the topic.
  Result<TopicState> topic(const std::string& name);
  /// The offset after the last message of each partition.
  Result<PartitionAnswers> ends(const std::string& topic, const std::set<std::int32_t>& partitions);
  /// The first offset there is of each partition.
  Result<PartitionAnswers> beginnings(const std::string& topic,
                                      const std::set<std::int32_t>& partitions);
  /// What the group has committed.
  Result<PartitionAnswers> committed(const std::string& topic,
                                     const std::set<std::int32_t>& partitions);
  /// The first offset of each partition whose message is not before the partition's time.
  Result<PartitionAnswers> first_since(const std::string& topic,
                                       const std::map<std::int32_t, Instant>& times);
  struct ReadMessage {
    std::int32_t partition = 0;
    std::int64_t offset = 0;
    std::optional<Instant> time = {};  ///< the broker's; nullopt: it has none
    std::string_view payload = {};     ///< valid during the call
  };
  /// Reads each partition from an offset on, until `take` says of a message that it was the last
  /// one wanted, or to its end, as far as they come in time and before `enough` says that somebody
  /// else waits. Returns the partitions of which all that was wanted has come.
  std::set<std::int32_t> read_from(const std::string& topic, const Offsets& at,
                                   const std::function<bool(const ReadMessage&)>& take,
                                   const std::function<bool()>& enough);
  /// The timestamps of the first messages at or after these offsets, as far as they came in time
  /// and before `enough` says that somebody else waits.
  std::map<std::int32_t, Instant> timestamps(const std::string& topic, const Offsets& at,
                                             const std::function<bool()>& enough);
  /// Whether this account may read these partitions. Waits a moment for a refusal; an end that
  /// nothing is written to gives no other sign.
  Status try_reading(const std::string& topic, const std::set<std::int32_t>& partitions);
  /// Whether this account may use the group. Commits nothing: it asks to commit the offset of a
  /// partition that does not exist, which the broker refuses after it has looked at the rights.
  Status try_committing(const std::string& topic);
  /// The topic's settings by name (retention.ms, cleanup.policy and so on).
  Result<std::map<std::string, std::string>> settings(const std::string& topic);

  /// What the client said last of its connections; empty: nothing.
  [[nodiscard]] std::string words();
  /// Which settings of the connection did not fit the broker's when a question failed last.
  [[nodiscard]] Fault fault() const noexcept;
  /// When the last question was answered; none: none was. Any thread.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> answered() const noexcept;

 private:
  TopicQuestions(std::chrono::milliseconds answer_within, std::shared_ptr<LastError> last_error,
                 KafkaClient client)
      : answer_within_(answer_within),
        last_error_(std::move(last_error)),
        client_(std::move(client)) {}
  Result<PartitionAnswers> list_offsets(const std::string& topic, const Offsets& at,
                                        const std::string& what);
  PartitionAnswers read(const rd_kafka_topic_partition_list_t& list, const std::string& what);
  void heard() noexcept;
  Status failure(const std::string& what, rd_kafka_resp_err_t code);
  [[nodiscard]] int answer_ms() const noexcept;

  const std::chrono::milliseconds answer_within_;
  std::atomic<std::chrono::steady_clock::rep> answered_{0};  // 0: never
  const std::shared_ptr<LastError> last_error_;
  const KafkaClient client_;
};

}  // namespace fcap::kafka
