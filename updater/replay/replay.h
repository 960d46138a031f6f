#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "kafka/consumer.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/intake.h"
#include "updater/replay/redis_memory.h"
#include "updater/replay/replay_writer.h"
#include "updater/watch/silence_book.h"

namespace fcap::updater {

/// Which part of the topic is replayed, and how gently.
struct ReplayOptions {
  kafka::ConsumerOptions consumer;  ///< group_id: the replay's own, not the updater's
  IntakeOptions intake;
  ReplayWriteOptions write;
  std::string key_prefix = kDefaultKeyPrefix;

  /// Empty: all.
  std::vector<std::int32_t> partitions;
  /// [from, to), each by the broker's time of a message or by offset (of every partition); at most
  /// one of each pair. None: from the first message there is; to the end as it is at the start.
  std::optional<Instant> from_time;
  std::optional<Instant> to_time;
  std::optional<std::int64_t> from_offset;
  std::optional<std::int64_t> to_offset;
  /// Says the same of single partitions, which must be among those that are replayed.
  std::map<std::int32_t, std::int64_t> from_offsets;
  std::map<std::int32_t, std::int64_t> to_offsets;
  /// Continues where an earlier replay of this group ended, if that is later.
  bool resume = false;

  /// 0: as fast as it goes.
  double messages_per_second = 0;
  /// Stops when Redis uses more; 0: never. Checked about once per second.
  std::uint64_t redis_bytes_max = 0;
  std::size_t batch_messages_max = 20'000;
  /// So many events are collected before they are written: the more, the fewer records are read and
  /// written again for the same user. With a rate, each batch is written at once.
  std::size_t collected_events_max = 500'000;
  std::chrono::milliseconds progress_interval{1000};
};

/// How far it has got.
struct ReplayProgress {
  std::uint64_t messages_read = 0;
  std::uint64_t messages_total = 0;  ///< offsets in the range: an upper bound
  std::chrono::milliseconds elapsed{0};
  std::optional<std::chrono::milliseconds> left;  ///< none: not known yet
  ReplayCounts counts;
};

struct ReplaySummary {
  enum class ReplayEnd : std::uint8_t {
    kComplete,
    kStopped,  ///< by the stop token
    kMemory,   ///< Redis uses more than redis_bytes_max
    kLost,     ///< Redis has lost what was written, more often than it is worth beginning again
  };
  ReplayEnd end = ReplayEnd::kComplete;
  std::uint64_t messages_read = 0;
  LeftOut left_out;
  ReplayCounts counts;
  std::chrono::milliseconds elapsed{0};
  /// The first offset of each partition that was not replayed.
  std::map<std::int32_t, std::int64_t> next_offsets;

  /// Whether all records are as they were.
  [[nodiscard]] bool changed_nothing() const noexcept { return counts.records_changed == 0; }
};

struct ReplayParts {
  Store* store = nullptr;
  events::EventDecoder* decoder = nullptr;
  /// What Redis uses; may be empty when redis_bytes_max is 0.
  std::function<std::optional<RedisMemory>()> memory;
  /// Whether Redis may have lost something of what was written since the last call; may be empty.
  std::function<bool()> lost;
  std::function<void(const ReplayProgress&)> progress;  ///< may be empty
  LogCallback log;
};

/// Brings the events of a part of the topic into Redis again: after a loss, into a new Redis, for a
/// longer retention. Reads records first and adds only what is missing, so it may be run at any
/// time, beside the updater, and any number of times.
class Replay {
 public:
  static Result<std::unique_ptr<Replay>> create(ReplayOptions options, ReplayParts parts);
  ~Replay();

  /// Blocks until the range is done, `stop`, or too little memory. Outages of Kafka and Redis are
  /// waited for; where Redis lost what was written, the range is read again from its beginning.
  /// Fails where it cannot begin: an unknown topic or partition, brokers that do not answer, an
  /// empty or inverted range.
  Result<ReplaySummary> run(const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;
  struct ReplaySpan {
    std::int64_t next = 0;
    std::int64_t end = 0;
    [[nodiscard]] bool done() const noexcept { return next >= end; }
  };

  Replay(ReplayOptions options, ReplayParts parts);

  [[nodiscard]] const std::string& topic() const { return options_.consumer.topic; }
  Status find_partitions();
  Status find_spans();
  Result<ReplaySpan> span_of(std::int32_t partition);
  Status start_reading();
  /// Partitions that deliver nothing are named, and their reading is begun again.
  void look_for_silence(Clock::time_point now);
  /// Until the range is done, or there is a reason to end; false: the reason is in the summary.
  bool read_range(const std::stop_token& stop);
  /// Reads a batch and, when enough has been collected, writes what is missing; false: stopped.
  bool step(const std::stop_token& stop);
  bool collect(const std::stop_token& stop);
  bool write_collected(const std::stop_token& stop);
  bool lost_something(Clock::time_point now, bool at_once);
  bool begin_again();
  bool collect_message(const rd_kafka_message_t& message, const IntakeClocks& clocks,
                       const std::stop_token& stop);
  void finish_partitions();
  [[nodiscard]] bool all_done() const;
  void throttle(const std::stop_token& stop);
  bool too_much_memory(Clock::time_point now);
  void save_position(Clock::time_point now, bool at_once);
  void report_progress(Clock::time_point now);
  [[nodiscard]] std::vector<kafka::PartitionOffset> positions() const;

  ReplayOptions options_;
  ReplayParts parts_;
  std::unique_ptr<kafka::Consumer> consumer_;
  Intake intake_;
  Coalescer coalescer_;
  ReplayWriter writer_;
  kafka::MessageBatch messages_;
  std::map<std::int32_t, ReplaySpan> spans_;           // next: everything below it was written
  std::map<std::int32_t, std::int64_t> collected_to_;  // where it is ahead of that
  std::map<std::int32_t, ReplaySpan> whole_spans_;     // as they were at first, resumption left out
  SilenceBook silence_;
  bool flowing_ = false;  // the last poll has left messages
  int begun_again_ = 0;
  std::vector<std::int32_t> reading_;
  std::uint64_t total_ = 0;
  std::int64_t newest_broker_ms_ = 0;
  ReplaySummary summary_;
  Clock::time_point began_{};
  Clock::time_point memory_due_{};
  Clock::time_point loss_due_{};
  Clock::time_point silence_due_{};
  Clock::time_point save_due_{};
  Clock::time_point progress_due_{};
  Clock::time_point next_turn_{};
  std::uint64_t paced_ = 0;  // messages that the rate has been applied to
};

/// One line for people: "12,000 of 40,000 messages (30 %), 8,000/s, 4 s left; …".
[[nodiscard]] std::string progress_line(const ReplayProgress& progress);
/// The end, in a few lines for people.
[[nodiscard]] std::string summary_text(const ReplaySummary& summary);
/// Says the same as one JSON object.
[[nodiscard]] std::string summary_json(const ReplaySummary& summary);

}  // namespace fcap::updater
