#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>
#include <fcap/store.h>

#include "events/event_decoder.h"
#include "updater/compaction/compaction_hook.h"
#include "updater/metrics/health.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch_writer.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/dead_letter.h"
#include "updater/pipeline/dead_letter_box.h"
#include "updater/pipeline/intake.h"
#include "updater/pipeline/kafka_consumer.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

struct UpdaterOptions {
  ConsumerOptions consumer;
  IntakeOptions intake;
  WriteOptions write;
  DeadLetterOptions dead_letters;
  MarkOptions mark;  ///< group_id, topic and retention are taken from the others
  std::string key_prefix = "fcap";
  std::size_t batch_messages_max = 20'000;
  /// How long a batch that is not full waits for more.
  std::chrono::milliseconds batch_wait{5};
  std::chrono::milliseconds commit_interval{1000};
  /// Partitions are paused when Redis has held the pipeline up for this long. Not sooner: pausing
  /// throws away what was fetched ahead (librdkafka 2.0.2), and a short hiccup needs no pause.
  std::chrono::milliseconds pause_after{500};
  /// The longest that a revoke and the end of run() wait for what is in flight.
  std::chrono::milliseconds drain_timeout{20'000};
};

/// What the updater works with; everything must outlive it.
struct UpdaterParts {
  Store* store = nullptr;
  /// redis::Client::connection_epoch, or a constant where there are no connections.
  PartitionSet::Epoch epoch;
  events::EventDecoder* decoder = nullptr;
  DeadLetterSink* dead_letters = nullptr;  ///< null: rejected messages are only counted
  CompactionHook* hook = nullptr;          ///< may be null
  Health* health = nullptr;                ///< may be null
  LogCallback log;                         ///< any thread
};

/// The write path: reads the topic, writes users' records, marks and commits, until it is told to
/// stop. At least once: an offset is committed and marked only when every event before it was
/// acknowledged by Redis, delivered to the dead-letter topic, or known to be irrelevant.
///
/// Blocking: run() blocks; everything it does happens on its thread, but the store's completions.
class Updater final : private AssignmentListener, private OffsetSource {
 public:
  static Result<std::unique_ptr<Updater>> create(UpdaterOptions options, UpdaterParts parts,
                                                 Metrics& metrics);
  ~Updater();

  /// Joins the group and works until `stop`, then drains, commits and leaves. Trouble with Kafka or
  /// Redis does not end it. The status is not ok when it could not start, and when Kafka's client
  /// has failed for good (a static member that was fenced): then a new process must begin.
  Status run(const std::stop_token& stop);

  /// The trimming clock: min(local clock, newest broker timestamp); none before the first message.
  /// Any thread.
  [[nodiscard]] std::optional<Instant> trim_now() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  Updater(UpdaterOptions options, UpdaterParts parts, Metrics& metrics);

  void on_assigning(std::vector<PartitionOffset>& partitions) override;
  void on_assigned(std::span<const PartitionOffset> partitions) override;
  void on_revoking(std::span<const PartitionOffset> partitions, bool lost) override;
  Status committed(std::vector<PartitionOffset>& partitions) override;
  Result<std::int64_t> retention_start(std::int32_t partition) override;
  [[nodiscard]] std::optional<std::int64_t> known_end(std::int32_t partition) const override;

  void turn();
  void settle(Clock::time_point now);
  void hold_up(Clock::time_point now);
  bool let_go();
  bool place_partitions();
  void read_batch();
  void take_messages();
  void count_accepted(Batch& batch, const rd_kafka_message_t& message);
  void reject(const rd_kafka_message_t& message);
  void settle_batch(Batch& batch);
  void send_refused(const Batch& batch, const Batch::Refused& refused, std::uint64_t generation);
  void settle_letters(Clock::time_point now);
  void hold_waiting();
  void report_partitions();
  void commit_if_due(Clock::time_point now);
  void drain(Clock::time_point until);
  void observe_delay(const Batch& batch);
  void report_health(Clock::time_point now);
  [[nodiscard]] IntakeClocks clocks() const noexcept;

  UpdaterOptions options_;
  UpdaterParts parts_;
  Metrics* metrics_;
  std::unique_ptr<KafkaConsumer> consumer_;
  Intake intake_;
  Coalescer coalescer_;
  PartitionSet partitions_;
  BatchWriter writer_;
  DeadLetterBox letters_;
  MessageBatch messages_;

  std::int64_t newest_broker_ms_ = 0;         // 0: no message had a timestamp yet
  std::atomic<std::int64_t> trim_now_ms_{0};  // 0: not known yet
  bool joined_ = false;                       // the group has given an assignment, if an empty one
  bool paused_ = false;
  Clock::time_point held_since_{};  // since when the pipeline is held up; epoch: it is not
  Clock::time_point commit_due_{};
  Clock::time_point lag_due_{};
  std::set<std::int32_t> held_;  // partitions that wait for a dead letter
  // Scratch.
  std::vector<Batch*> done_;
  std::vector<PartitionOffset> offsets_;
  std::vector<std::int32_t> failed_;
  std::vector<DeadLetterBox::Place> arrived_;
};

}  // namespace fcap::updater
