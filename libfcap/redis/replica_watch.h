#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <fcap/redis_options.h>

namespace fcap::redis {

/// Decides whether checks may read from one replica, by what its master and it say about
/// themselves. Pure: it is told the time.
///
/// How far a replica is behind is the age of the newest position in the master's stream of writes
/// that it has reached. That is measured by asking both for their positions, once per second, and
/// so is known to about a second. What a replica says about itself is not used: it counts from when
/// it last heard of its master, which an idle master lets it do every 10 s only, and which says
/// nothing about how much it still has to read.
class ReplicaWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// A replica is of use for this long after its master was lost.
  static constexpr std::chrono::seconds kStandsInFor{60};

  ReplicaWatch(RedisReplicaReads reads, Duration lag_max) : reads_(reads), lag_max_(lag_max) {}

  /// What a server said, or did not say in time, when it was asked.
  struct PositionAnswer {
    TimePoint asked_at;
    TimePoint answered_at;
    std::int64_t position = 0;  ///< in the stream of writes
    bool link_up = true;        ///< a replica's, to its master
  };

  void note_master(const PositionAnswer& answer);
  void note_replica(const PositionAnswer& answer);
  /// It was asked then, and has not answered yet.
  void note_master_silent(TimePoint asked_at, TimePoint now);
  void note_replica_silent(TimePoint asked_at, TimePoint now);
  /// Another replica follows, or none.
  void forget_replica() noexcept;

  /// No request can be sent to the master any more.
  void on_master_lost(TimePoint now);
  /// One can be sent, to this master or another.
  void on_master_found() noexcept;
  [[nodiscard]] bool master_lost() const noexcept { return lost_at_.has_value(); }

  /// Whether checks are to be read from the replica.
  [[nodiscard]] bool may_read(TimePoint now) const noexcept;
  /// Whether it could stand in for its master if that were lost now; for a lost one, whether it
  /// could when that was lost.
  [[nodiscard]] bool is_well(TimePoint now) const noexcept;
  /// Until when may_read() may stay true with nothing new; the end of time where that is unknown.
  [[nodiscard]] TimePoint until() const noexcept;
  /// For people: "1200 ms behind", "its link to the master is down".
  [[nodiscard]] std::string state_text(TimePoint now) const;

 private:
  struct DatedPosition {
    std::int64_t position = 0;
    TimePoint at;
  };

  void compare_times() noexcept;

  RedisReplicaReads reads_;
  Duration lag_max_;
  std::deque<DatedPosition> positions_;    // the master's, the newest last
  std::optional<TimePoint> reached_at_;    // of the newest position that the replica has reached
  std::optional<TimePoint> link_down_at_;  // when it was first seen so
  std::optional<TimePoint> lost_at_;
  // How long answers take, smoothed.
  std::optional<Duration> master_time_;
  std::optional<Duration> replica_time_;
  bool replica_is_nearer_ = false;
};

}  // namespace fcap::redis
