#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fcap/log.h>

namespace fcap::updater {

/// Finds out that an updater makes no progress although there are messages for it, and says so:
/// once in the log when it begins, for each thing that it waits for, once when it is over, and in
/// /readyz for as long as it lasts. Free of I/O and of clocks.
///
///     book.look(joined, positions, commits_wait, now);
///     for (const StallBook::Stall& stall : book.stalls(now)) reasons.push_back(reason_of(stall));
///     health.set_problem(kind, book.tell(reasons, now, log));
///
/// Thread safety: none.
class StallBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// What is waited for.
  enum class Wait : std::uint8_t {
    kAssignment,   ///< the group assigns no partitions to this member
    kCommit,       ///< the group's coordinator answers no commit
    kStart,        ///< Kafka does not say where reading begins, or which log this is
    kMark,         ///< a mark is not read or confirmed
    kPlace,        ///< Kafka's client does not go to where reading continues
    kDecoder,      ///< a message cannot be decoded yet
    kDeadLetters,  ///< dead letters do not arrive
    kRedis,        ///< Redis does not acknowledge events
    kMessages,     ///< Kafka delivers nothing
  };

  /// How far an assigned partition is.
  struct PartitionPosition {
    std::int32_t partition = 0;
    /// Everything below it is done; nullopt: unknown, or there may be more that is not done.
    std::optional<std::int64_t> done;
    std::optional<std::int64_t> messages;  ///< how many are not done; nullopt: unknown now
  };

  /// What has made no progress.
  struct Stall {
    std::optional<std::int32_t> partition = {};  ///< nullopt: this member as a whole
    bool commits = false;                        ///< of the member: its commits, not its assignment
    TimePoint since;
    std::optional<std::int64_t> messages;  ///< that wait in the partition, as last known
  };
  struct StallCause {
    Wait wait = Wait::kMessages;
    std::string text;  ///< for people, in one line
  };
  struct StallReason {
    Stall stall;
    StallCause cause;
  };

  explicit StallBook(std::chrono::milliseconds after = std::chrono::seconds{10}) : after_(after) {}

  /// `joined`: the group has assigned partitions to this member, even if none. `commits_wait`:
  /// since when no commit has been answered although some are under way; nullopt: none are.
  void look(bool joined, std::span<const PartitionPosition> positions,
            std::optional<TimePoint> commits_wait, TimePoint now);

  /// What has stood still for long enough to be reported.
  [[nodiscard]] std::vector<Stall> stalls(TimePoint now) const;

  /// One line for each thing that is waited for; empty: nothing. `reasons`: one of each stall.
  std::string tell(std::span<const StallReason> reasons, TimePoint now, const LogCallback& log);

 private:
  struct LastKnown {
    std::optional<std::int64_t> done;  // as last known
    std::optional<std::int64_t> messages;
    TimePoint since;
    bool idle = false;  // whoever has nothing to do does not wait
  };

  const std::chrono::milliseconds after_;
  std::optional<TimePoint> unassigned_since_;
  std::optional<TimePoint> commits_since_;
  std::map<std::int32_t, LastKnown> partitions_;
  std::set<Wait> said_;                // of the stall that lasts
  std::optional<TimePoint> began_at_;  // the stall that the log knows of
};

}  // namespace fcap::updater
