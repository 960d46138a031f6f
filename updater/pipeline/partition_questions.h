#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <fcap/log.h>
#include <fcap/status.h>

#include "updater/marks/log_look.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/expired_book.h"
#include "updater/pipeline/mark_options.h"
#include "updater/pipeline/partition.h"
#include "updater/pipeline/partition_troubles.h"
#include "updater/watch/log_bounds.h"

namespace fcap::updater {

/// What is asked of Kafka about the partitions: where reading may begin, whether each log is the
/// one that was read, and whether messages have expired before they were read. Never blocks.
///
/// Thread safety: one thread.
class PartitionQuestions {
 public:
  using Clock = Partition::Clock;
  /// Takes an answer to look_for(); false: it is to another question.
  using TakeLook = std::function<bool(const LogLooks::LookAnswer&)>;

  /// All must outlive this.
  PartitionQuestions(OffsetSource& source, const MarkOptions& options, Partitions& partitions,
                     PartitionTroubles& troubles, ExpiredBook& expired, Metrics& metrics,
                     LogCallback log);

  /// As PartitionSet::set_log_looks().
  void set_log_looks(LogLooks* looks) noexcept {
    looks_ = looks;
    logs_matter_ = logs_matter_ || looks != nullptr;
  }
  /// Whether a mark that this process has not written is believed only once its log was looked at.
  [[nodiscard]] bool logs_matter() const noexcept { return logs_matter_; }
  [[nodiscard]] bool can_look() const noexcept { return looks_ != nullptr; }

  /// Asks for the bounds of newly assigned partitions, all of them together.
  void ask_bounds(std::span<const std::int32_t> partitions);
  [[nodiscard]] bool bounds_answered(std::int32_t partition) const {
    return source_->answer(partition).has_value();
  }
  /// The bounds; nullopt: not known yet. Then the partition is in phase kAsking, or in kChecking
  /// after a failure.
  std::optional<LogBounds> bounds_of(Partition& p, Clock::time_point now);
  /// Kafka's answer, once. Without one it is asked for with the next send().
  std::optional<Result<LogBounds>> answer_of(Partition& p);
  /// Asks what partitions need to know since the last call, all of them together.
  void send();

  /// Looks for these messages in the partition's log; returns the question's number.
  std::uint64_t look_for(std::int32_t partition, const KnownLog& known);
  /// The number of a question that is never asked.
  std::uint64_t unanswered_ticket() noexcept { return ++looks_asked_; }
  /// Looks whether the log is still the one that is read. `reached`: so far it was read.
  void look_if_due(Partition& p, std::int64_t reached, Clock::time_point now);
  /// Takes what has arrived. Another log is noted in PartitionCheck::other_log, and Kafka is asked
  /// where it begins (kAsking).
  void take_looks(Clock::time_point now, const TakeLook& take_other);

  /// Whether messages have expired where reading has jumped over offsets.
  void judge_jump(Partition& p, Clock::time_point now);

  /// Reading begins at the start of the retention of the log that check().other_log is about, once
  /// its Recovery has let the mark fall: what that says is true of the former log only. `stamp`:
  /// for what was taken of the former one.
  void begin_other_log(Partition& p, std::int64_t start, std::uint64_t stamp);
  /// It is assumed that the log is the one that was read before.
  void say_unverified(Partition& p, const LogVerdict& verdict);

 private:
  void take_look(Partition& p, const LogLooks::LookAnswer& answer, Clock::time_point now);
  void report(LogLevel level, const std::string& text) const;

  OffsetSource* source_;
  LogLooks* looks_ = nullptr;
  bool logs_matter_ = false;  // looks_ was set once
  std::uint64_t looks_asked_ = 0;
  std::chrono::milliseconds log_interval_;
  std::chrono::milliseconds log_interval_min_;
  Partitions* partitions_;
  PartitionTroubles* troubles_;
  ExpiredBook* expired_;
  Metrics* metrics_;
  LogCallback log_;
  std::vector<std::int32_t> to_ask_;  // with the next send()
};

}  // namespace fcap::updater
