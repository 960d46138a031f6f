#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>

namespace fcap::updater {

/// Which partitions give no messages although their logs have some, and when to do something about
/// it. Free of I/O and of clocks.
///
/// What Kafka's client has fetched of other partitions may wait in front of a partition's messages.
/// So silence counts early only if everything that was fetched has been delivered meanwhile.
///
/// Thread safety: none.
class SilenceBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Reading {
    std::int32_t partition = 0;
    std::int64_t next = 0;  ///< where it is read on
    std::int64_t end = 0;   ///< where its log ends
  };

  /// The partitions that are being read now. No messages are expected from other partitions.
  void set_reading(std::span<const Reading> reading, TimePoint now);
  /// Everything that was fetched has been delivered.
  void set_drained(TimePoint now) noexcept { drained_ = now; }

  [[nodiscard]] std::set<std::int32_t> silent(TimePoint now) const;
  /// Whether it is time to begin again with the silent ones. The wait doubles each time, so that a
  /// slow broker gets time to deliver.
  [[nodiscard]] bool take_remedy(TimePoint now);

 private:
  struct Silence {
    std::int64_t next = 0;
    TimePoint since;
    TimePoint remedy_at;
    std::chrono::milliseconds wait{0};  ///< from that remedy to the next
  };
  [[nodiscard]] bool is_silent(const Silence& silence, TimePoint now) const;

  TimePoint drained_{};
  std::map<std::int32_t, Silence> silences_;
};

}  // namespace fcap::updater
