#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "updater/marks/log_look.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// Keeps what one partition's log is known by while it is read, and when it is to be looked at
/// again. Pure.
///
/// A topic that is recreated under a running reader, and is longer than what was read by the time
/// of the next fetch, is read on at the old offset without a word. So now and then a message that
/// was found in the log the last time is looked for once more, together with the newest one: only
/// what is delivered before such a look is known to be of the same log.
class LogWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// The log of a mark is read on from `start`.
  void begin(const LogIdentity& log, std::int64_t start);
  /// Another log, or one of which nothing is known.
  void forget();
  /// The same log is read on from `start`.
  void restart(std::int64_t start);
  /// A mark that was found speaks of this log: so that the next mark names a message, too.
  void know(const LogIdentity& log, std::int64_t start);
  void set_cluster(std::string word) { cluster_ = std::move(word); }
  [[nodiscard]] const std::string& cluster() const noexcept { return cluster_; }

  /// A message was delivered; ascending offsets since the last restart.
  void delivered(const LogPoint& point);
  /// What a mark at this position says of the log. Positions never fall between restarts.
  [[nodiscard]] LogIdentity identity(std::int64_t position);

  /// Something happened to the log's brokers: the newest message is one to look for.
  void suspect();

  /// A look that was asked for.
  struct Look {
    std::uint64_t ticket = 0;  ///< 0: it has failed
    KnownLog known;
  };
  std::optional<Look> look;
  void start_look(KnownLog known) { look = Look{0, std::move(known)}; }
  /// For what this log is known by. `position`: where reading is.
  void start_look(std::int64_t position);
  /// It has not found another log.
  void end_look(const LogVerdict& verdict);

  Clock::time_point due{};         ///< when the next look is
  Clock::time_point not_before{};  ///< not even if something happens
  bool said_unverified = false;    ///< it was said that nothing is left to know the log by

 private:
  static constexpr std::size_t kPointsMax = 1024;

  std::string cluster_;
  std::optional<LogPoint> first_;    // delivered since the last restart
  std::optional<LogPoint> checked_;  // the newest that a look has found again
  std::optional<LogPoint> suspect_;  // the newest before the last trouble
  std::deque<LogPoint> points_;      // ascending; the first may be below every mark to come
};

}  // namespace fcap::updater
