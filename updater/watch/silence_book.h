#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>

namespace fcap::updater {

/// Finds partitions that deliver no messages although their logs have some, and says when to assign
/// them again. Free of I/O and of clocks.
///
/// Messages that Kafka's client has fetched from other partitions may be queued before a
/// partition's own. So a partition counts as silent early only if everything that was fetched has
/// been delivered meanwhile.
///
/// Thread safety: none.
class SilenceBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Reading {
    std::int32_t partition = 0;
    std::int64_t next = 0;  ///< the next offset to be read
    std::int64_t end = 0;   ///< where its log ends
  };

  /// The partitions that are being read now. No messages are expected from other partitions.
  void set_reading(std::span<const Reading> reading, TimePoint now);
  /// Everything that was fetched has been delivered.
  void set_drained(TimePoint now) noexcept { drained_ = now; }

  [[nodiscard]] std::set<std::int32_t> silent(TimePoint now) const;
  /// Whether it is time to assign the silent partitions again. The wait doubles each time, so that
  /// a slow broker gets time to deliver.
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
