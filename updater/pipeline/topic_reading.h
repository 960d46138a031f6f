#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "kafka/consumer.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/partition_set.h"
#include "updater/watch/lag_book.h"
#include "updater/watch/silence_book.h"

namespace fcap::updater {

/// Which partitions Kafka's consumer reads, and from where: holds those that wait for a message of
/// their own, pauses all while what was read cannot be written, and moves the consumer to where
/// reading continues.
///
/// Thread safety: one thread.
class TopicReading {
 public:
  using Clock = std::chrono::steady_clock;

  /// `pause_after` is UpdaterOptions::pause_after. All arguments must outlive it.
  TopicReading(kafka::Consumer& consumer, PartitionSet& partitions,
               std::chrono::milliseconds pause_after, Metrics& metrics)
      : consumer_(&consumer),
        partitions_(&partitions),
        metrics_(&metrics),
        pause_after_(pause_after) {}

  /// The next message of a partition cannot be decoded yet. Later ones wait with it: hold() sets
  /// the partition back to it.
  void await_decoder(std::int32_t partition, Clock::time_point now);
  [[nodiscard]] bool awaits_decoder(std::int32_t partition) const {
    return undecoded_.contains(partition);
  }
  /// Holds exactly the partitions that wait for their decoder, or that are in `waiting`.
  void hold(std::set<std::int32_t> waiting, Clock::time_point now);
  void revoked(std::span<const PartitionOffset> partitions);

  /// Nothing should be read now. True: this has lasted for so long that all partitions are paused.
  bool pause_if_due(Clock::time_point now);
  [[nodiscard]] bool paused() const noexcept { return paused_; }
  /// Reading continues, at its place in each partition.
  void resume(Clock::time_point now);

  /// Everything that was fetched has been delivered.
  void set_drained(Clock::time_point now) noexcept { silence_.set_drained(now); }
  /// librdkafka may stop fetching a partition without reporting an error: then all are assigned
  /// again. `ends`: where their logs end, as far as is known.
  void look_for_silence(const LagBook::Offsets& ends, Clock::time_point now);

 private:
  void place_partitions(Clock::time_point now);
  void place_from_scratch();

  kafka::Consumer* consumer_;
  PartitionSet* partitions_;
  Metrics* metrics_;
  std::chrono::milliseconds pause_after_;
  std::set<std::int32_t> held_;
  /// Partitions whose next message cannot be decoded yet, and when to try again.
  std::map<std::int32_t, Clock::time_point> undecoded_;
  Clock::time_point held_since_{};  // since when nothing should be read; epoch: it should
  bool paused_ = false;
  Clock::time_point place_due_{};  // after a try that failed
  bool assign_again_ = false;      // some partition gives nothing, and a seek may not help
  SilenceBook silence_;
  // Scratch.
  std::vector<PartitionOffset> offsets_;
  std::vector<std::int32_t> failed_;
};

}  // namespace fcap::updater
