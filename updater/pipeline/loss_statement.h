#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <fcap/time.h>

#include "redis/config_record.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// What an updater has seen of its marks.
struct MarkNews {
  using Clock = std::chrono::steady_clock;

  /// When the last write began by which Redis has confirmed that a partition's mark, in a cluster
  /// those of all shards that are not away, is the one that was written before.
  std::map<std::int32_t, Clock::time_point> compared = {};
  /// How many partitions the topic has; 0: Kafka has not said.
  std::int32_t partitions = 0;
  /// Where marks are gone that were there, since the last news.
  SlotSet gone = {};
  /// Every event accepted so far is before it.
  Instant latest = {};
  /// Grows with each connection to Redis.
  std::uint64_t connections = 0;
};

/// What the updaters of a topic say together after Redis has lost data, in one entry for all
/// partitions, named "*": a mark that is gone, or a configuration that is, shows that all events
/// may be missing, also those of partitions that nobody owns at present. Whoever has compared a
/// partition's mark since then says what that partition lacks, perhaps nothing (an instant of 0).
/// Once all partitions have an entry, "*" goes.
///
/// Two updaters may state the same loss, and a later one while "*" stands: it then begins again,
/// and takes in what the entries of single partitions said.
///
/// Pure: no I/O. Thread safety: one thread.
class LossStatement {
 public:
  using Clock = MarkNews::Clock;
  using Missing = redis::ConfigRecord::MissingBefore;
  using Partitions = Missing::mapped_type;
  static constexpr std::string_view kAllPartitions = "*";
  /// The entry about messages that Kafka no longer has. It is no partition's: whoever fills gaps
  /// leaves it, and it goes when no window reaches so far back any more.
  static constexpr std::string_view kExpired = "expired";
  /// Stands beside "*", with an instant of 0, where that only repeats for a topic what others have
  /// found out. Without it, the updaters of several topics would repeat each other's statements
  /// without end.
  static constexpr std::string_view kRepeated = "repeated";

  /// Events of these users may be missing: to be stated with the next apply().
  void lost(const SlotSet& slots);
  [[nodiscard]] bool pending() const noexcept { return !pending_.empty() || !repeated_.empty(); }
  /// How many losses apply() states.
  [[nodiscard]] std::uint64_t losses() const noexcept { return losses_; }
  /// So many losses are stated in what was written.
  void written(std::uint64_t losses);

  /// Looks at what is recorded; ConfigRecord{}: nothing. All groups and topics share the data of
  /// this Redis, so what others have found out is a loss for `own` as well, unless a statement of
  /// `own` stands already. A record that was created since the last look shows the same: others may
  /// have stated that loss, and taken their statement back meanwhile.
  void look(const redis::ConfigRecord& found, const std::string& own, Clock::time_point now);

  /// Puts what is pending into the entries of a topic, in place of all but kExpired. `latest`: as
  /// in MarkNews.
  void apply(Partitions& entries, Instant latest) const;

  /// Whether "*" is among the entries.
  [[nodiscard]] static bool stands(const Partitions& entries);
  /// Whether nothing may be said yet about a partition of the topic: "*" stands, and the
  /// partition's mark was not compared since that was seen.
  [[nodiscard]] bool holds_back(const std::string& topic, const Partitions& entries,
                                Clock::time_point compared) const;
  /// Removes "*" if each of the topic's partitions has an entry.
  static void settle(Partitions& entries, std::int32_t partitions);
  /// Adds what is missing for good.
  static void expire(Partitions& entries, const redis::MissingEvents& events);

 private:
  struct Seen {
    redis::MissingEvents events;
    Clock::time_point at;
  };

  SlotSet pending_;
  SlotSet repeated_;  // pending as well: what others have found out
  std::uint64_t losses_ = 0;
  Instant created_ = {};              // ConfigRecord::created when it was last known
  std::map<std::string, Seen> seen_;  // the statement that stood at the last look, by topic
};

}  // namespace fcap::updater
