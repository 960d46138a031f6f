#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/store.h>

#include "events/event_decoder.h"
#include "kafka/consumer.h"
#include "redis/client.h"
#include "updater/compaction/compaction_hook.h"
#include "updater/compaction/trim_clock.h"
#include "updater/marks/log_prober.h"
#include "updater/metrics/metrics.h"
#include "updater/metrics/updater_health.h"
#include "updater/pipeline/batch_writer.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/dead_letter.h"
#include "updater/pipeline/dead_letter_box.h"
#include "updater/pipeline/event_clocks.h"
#include "updater/pipeline/fill_pace.h"
#include "updater/pipeline/gap_filler.h"
#include "updater/pipeline/gap_reader.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/health_report.h"
#include "updater/pipeline/intake.h"
#include "updater/pipeline/loss_statement.h"
#include "updater/pipeline/partition_set.h"
#include "updater/pipeline/rejection_watch.h"
#include "updater/pipeline/topic_reading.h"
#include "updater/watch/topic_watch.h"

namespace fcap::updater {

struct UpdaterOptions {
  kafka::ConsumerOptions consumer;
  IntakeOptions intake;
  WriteOptions write;
  DeadLetterOptions dead_letters;
  RejectionWatchOptions rejections;
  MarkOptions mark;  ///< group_id, topic and retention are taken from the others
  std::string key_prefix = kDefaultKeyPrefix;
  std::size_t batch_messages_max = 80'000;
  /// How long a batch that is not full waits for more.
  std::chrono::milliseconds batch_wait{5};
  std::chrono::milliseconds commit_interval{1000};
  /// Partitions are paused when Redis has held the pipeline up for this long. Not sooner: pausing
  /// throws away what was fetched ahead (librdkafka 2.0.2), and a short hiccup needs no pause.
  std::chrono::milliseconds pause_after{3000};
  /// The longest that a revoke and the end of run() wait for what is in flight.
  std::chrono::milliseconds drain_timeout{20'000};
  /// The longest that the end of run() waits for Kafka besides, after the last commit.
  std::chrono::milliseconds leave_timeout{10'000};
};

/// What the updater works with; everything must outlive it.
struct UpdaterParts {
  Store* store = nullptr;
  /// redis::Client::connection_epoch, or a constant where there are no connections.
  PartitionSet::Epoch epoch;
  /// The store's client where it is of a Redis Cluster; otherwise null.
  std::shared_ptr<redis::Client> cluster;
  events::EventDecoder* decoder = nullptr;
  DeadLetterSink* dead_letters = nullptr;  ///< null: rejected messages are only counted
  CompactionHook* hook = nullptr;          ///< may be null
  /// Set with each batch to the earliest of the local clock, Redis' and the newest broker
  /// timestamp; may be null.
  TrimClock* trim_clock = nullptr;
  Health* health = nullptr;
  EventClocks::RedisClock redis_clock;  ///< may be empty
  TopicWatch* watch = nullptr;          ///< of the same topic and group
  LogCallback log;                      ///< any thread
};

/// The write path: reads the topic, writes users' records, marks and commits, until it is told to
/// stop. At least once: an offset is committed and marked only when every event before it was
/// acknowledged by Redis, delivered to the dead-letter topic, known to be irrelevant, or, in a
/// cluster, recorded as missing for its slot, to be read again.
///
/// Blocking: run() blocks; everything it does happens on its thread, but the store's completions.
class Updater final : private kafka::AssignmentListener {
 public:
  static Result<std::unique_ptr<Updater>> create(UpdaterOptions options, UpdaterParts parts,
                                                 Metrics& metrics);
  ~Updater();

  /// Joins the group and works until `stop`, then drains, commits and leaves. Trouble with Kafka or
  /// Redis does not end it. The status is not ok when it could not start, and when Kafka's client
  /// has failed for good (a static member that was fenced): then a new process must begin.
  Status run(const std::stop_token& stop);

  /// The gaps of the partitions that are assigned. On run()'s thread only, as from Health's beat.
  [[nodiscard]] OpenGaps open_gaps();
  /// Likewise.
  [[nodiscard]] MarkNews mark_news();

 private:
  using Clock = std::chrono::steady_clock;

  Updater(UpdaterOptions options, UpdaterParts parts, std::unique_ptr<kafka::Consumer> consumer,
          std::unique_ptr<LogProber> prober, Metrics& metrics);

  void on_assigning(std::vector<PartitionOffset>& partitions) override;
  void on_revoking(std::span<const PartitionOffset> partitions, bool lost) override;

  std::unique_ptr<PartitionSet> make_partitions();
  void run_once();
  void tell_watch();
  /// The order in it matters. Batches and letters come before the partitions' tick(), so that what
  /// tick() marks and commits is all that is known to be done. Within a batch, letters of refused
  /// writes are opened before its ranges complete: a complete range may be committed at once, and a
  /// letter opened only then would be lost in a crash. And where tick() finds that Redis has lost a
  /// mark, it has lost records as well: the writer forgets which records and expiries it knows
  /// before it sends again.
  void tick(Clock::time_point now);
  void look_if_due(Clock::time_point now);
  void wait_or_pause(Clock::time_point now);
  void read_batch();
  [[nodiscard]] std::chrono::milliseconds first_wait() const noexcept;
  void take_messages();
  bool take_message(const rd_kafka_message_t& message, const IntakeClocks& judged_by, Batch& batch,
                    LeftOut& left_out);
  void reject(const rd_kafka_message_t& message, const events::Rejected& why,
              std::uint64_t generation);
  void settle_batch(Batch& batch);
  Status start_filling();
  void fill_gaps(Clock::time_point now, bool read);
  void send_refused(const Batch& batch, const Batch::Refused& refused);
  void settle_letters(Clock::time_point now);
  void commit_if_due(Clock::time_point now);
  void drain(Clock::time_point until);
  void observe_delay(const Batch& batch);

  UpdaterOptions options_;
  UpdaterParts parts_;
  Metrics* metrics_;
  std::unique_ptr<kafka::Consumer> consumer_;
  std::unique_ptr<LogProber> prober_;
  std::unique_ptr<GapReader> gap_reader_;
  EventClocks clocks_;
  Intake intake_;
  Coalescer coalescer_;
  std::unique_ptr<PartitionSet> partitions_;
  BatchWriter writer_;
  GapTimes gap_times_;
  FillPace pace_;
  std::unique_ptr<GapFiller> filler_;  // null: gaps are read in line
  DeadLetterBox letters_;
  RejectionWatch rejections_;
  TopicReading reading_;
  HealthReport report_;
  kafka::MessageBatch messages_;

  bool joined_ = false;              // the group has given an assignment, if an empty one
  std::uint64_t troubles_ = 0;       // the consumer's, at the last look
  std::uint64_t offset_resets_ = 0;  // likewise
  Clock::time_point commit_due_{};
  Clock::time_point lag_due_{};
  Clock::time_point look_due_{};
  // Scratch.
  std::vector<Batch*> done_;
  std::vector<PartitionOffset> offsets_;
  std::vector<DeadLetterBox::LetterPosition> arrived_;
};

}  // namespace fcap::updater
