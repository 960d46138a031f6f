#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "updater/marks/log_look.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// Keeps the messages that identify one partition's log while it is read, and decides when to check
/// the log again. Pure.
///
/// If a topic is recreated under a running reader, and by the next fetch is longer than what was
/// read, Kafka's client silently reads on at the old offset. So from time to time the updater looks
/// in the log for the newest message, for the one that was found there the last time, and for some
/// older ones. Only messages that were delivered before such a look are known to be from the same
/// log.
class LogWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Reading of a mark's log begins at `start`. `found_again`: which of the mark's messages a look
  /// has found.
  void begin(const LogIdentity& log, std::int64_t start, std::optional<LogPoint> found_again = {});
  /// For another log, or one that nothing is known of.
  void forget();
  /// Reading of the same log continues at `start`.
  void restart(std::int64_t start);
  /// A mark in the store is taken to be about this log, although the messages that it names are
  /// gone. The next mark names them too if no other is known.
  void assume(const LogIdentity& log, std::int64_t start);
  /// Says the same of a mark that this process wrote, or of which a look has found this message
  /// again.
  void know(const LogIdentity& log, std::int64_t start, std::optional<LogPoint> found_again = {});
  /// A message below the position was read, in a gap.
  void read_in_gap(const LogPoint& point, std::int64_t start);
  void set_cluster(std::string word) { cluster_ = std::move(word); }
  [[nodiscard]] const std::string& cluster() const noexcept { return cluster_; }

  /// A message was delivered; ascending offsets since the last restart.
  void delivered(const LogPoint& point);
  /// What a mark at this position says of the log. Positions never fall between restarts.
  [[nodiscard]] LogIdentity identity(std::int64_t position);

  /// Something happened to the log's brokers: the next look is also for the newest message.
  void suspect();

  /// A look that was started.
  struct StartedLook {
    std::uint64_t ticket = 0;  ///< 0: it has failed
    KnownLog known;
  };
  std::optional<StartedLook> look;
  void start_look(KnownLog known) { look = StartedLook{0, std::move(known)}; }
  /// Looks for the messages that identify this log. `position`: where reading is.
  void start_look(std::int64_t position);
  /// The look has ended and has not found another log.
  void end_look(const LogVerdict& verdict);

  Clock::time_point due{};         ///< when the next look is
  Clock::time_point not_before{};  ///< not even if something happens
  bool said_unverified = false;    ///< it was logged that no message identifies the log any more

 private:
  static constexpr std::size_t kPointsMax = 1024;

  // Remembers the message if it is the first one since the last restart.
  void read_first(const LogPoint& point);
  // Where no message below `start` is known, the first of these that is below it.
  void keep_name(std::initializer_list<std::optional<LogPoint>> known, std::int64_t start);

  std::string cluster_;
  std::optional<LogPoint> first_;    // delivered, or read in a gap, since the last restart
  std::optional<LogPoint> checked_;  // the newest that a look has found again
  std::optional<LogPoint> suspect_;  // the newest before the last trouble
  // The point up to which was read before the last restart. It stays when a look does not find it:
  // in another log, another message may be at its offset.
  std::optional<LogPoint> below_;
  // Where reading was before it went back; 0 once a look has found a message again.
  std::int64_t reached_ = 0;
  std::deque<LogPoint> points_;  // ascending; the first may be below every mark to come
};

}  // namespace fcap::updater
