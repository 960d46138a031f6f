#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <fcap/status.h>
#include <fcap/time.h>

namespace fcap::kafka {
class TopicQuestions;
}  // namespace fcap::kafka

namespace fcap::updater {

/// Where reading of a partition may begin, as far as Kafka knows.
struct LogBounds {
  std::optional<std::int64_t> committed;  ///< the group's offset; nullopt: it has none
  std::int64_t retention_start = 0;       ///< the first offset that may hold an event that counts
  std::int64_t log_start = 0;             ///< the first offset that exists
  /// Messages that no longer exist may have held events that count still, none later than this, but
  /// for how far clocks may be ahead. Instant::max(): nobody knows how late. nullopt: there were
  /// none.
  std::optional<Instant> gone_before = {};
  /// Messages that Kafka dates before the retention hold events of it: reading begins with the log.
  bool misdated = false;
};

/// What partitions need to know of Kafka's log.
class OffsetSource {
 public:
  /// Queries where reading of the partitions may begin, without waiting, for all of them together.
  /// Forgets their earlier answers.
  virtual void ask(std::span<const std::int32_t> partitions) = 0;
  /// The answer to the last query; nullopt: it has not arrived.
  [[nodiscard]] virtual std::optional<Result<LogBounds>> answer(std::int32_t partition) const = 0;

 protected:
  ~OffsetSource() = default;
};

/// The latest time of the events in a message; nullopt: it has none.
using NewestEvent = std::function<std::optional<Instant>(std::string_view payload)>;

/// How often in a row a partition's messages did not come in time for a look at them.
using MissedLooks = std::map<std::int32_t, int>;

using LogBoundsAnswers = std::map<std::int32_t, Result<LogBounds>>;

/// Asks Kafka for the bounds of all these partitions of a topic together; blocks for as long as it
/// takes. The retention is counted back from the earlier of two clocks: `now`, and the log's own,
/// which is the time of its newest message. A local clock that is ahead must not skip events that
/// still count. Nor must a message's time that is far behind its events': the last messages that
/// would be skipped are looked at. `newest_event` may be empty: then they are not. Where they do
/// not come in time, the answer is an error, and the third time it does without them.
[[nodiscard]] LogBoundsAnswers find_log_bounds(kafka::TopicQuestions& questions,
                                               const std::string& topic,
                                               std::set<std::int32_t> partitions,
                                               std::chrono::milliseconds retention, Instant now,
                                               const NewestEvent& newest_event,
                                               MissedLooks& missed);

/// The queries for bounds, and their answers. An answer that arrives after its partition was
/// queried again is dropped.
///
/// Thread safety: none.
class BoundsBook {
 public:
  /// Partition to the number of its question.
  using Waiting = std::map<std::int32_t, std::uint64_t>;

  /// Forgets the partitions' earlier answers.
  void ask(std::span<const std::int32_t> partitions);
  [[nodiscard]] bool waiting() const noexcept { return !waiting_.empty(); }
  /// The partitions that wait for an answer; settle() gives it.
  [[nodiscard]] Waiting take_waiting();
  void settle(const Waiting& taken, const LogBoundsAnswers& answers);
  /// The answer to the last query; nullopt: it has not arrived.
  [[nodiscard]] std::optional<Result<LogBounds>> answer(std::int32_t partition) const;

 private:
  struct BoundsQuestion {
    std::uint64_t number = 0;
    std::optional<Result<LogBounds>> answer;
  };

  std::uint64_t asked_ = 0;
  std::map<std::int32_t, BoundsQuestion> questions_;
  Waiting waiting_;
};

}  // namespace fcap::updater
