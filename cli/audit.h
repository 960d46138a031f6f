#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "cli/record_reader.h"
#include "events/event.h"
#include "ledger/ledger.h"

namespace fcap::cli {

/// What a comparison of a topic with the ledgers found.
struct AuditReport {
  std::uint64_t messages = 0;  ///< read from the topic
  std::uint64_t skipped = 0;   ///< not an event, of another user prefix, or an erasure
  std::uint64_t produced = 0;  ///< distinct events: what must be counted
  std::uint64_t repeated = 0;  ///< messages that repeat an event
  std::uint64_t users = 0;
  std::uint64_t counted = 0;  ///< entries in the ledgers of these users
  std::uint64_t lost = 0;     ///< events that no ledger holds
  std::uint64_t extra = 0;    ///< entries that no event of the topic explains: counted twice
  std::uint64_t unreadable = 0;
  /// Events that were shown although the rules, applied to all events published before, say capped.
  std::uint64_t over_cap = 0;
  /// Of these: would have passed without the events published less than `propagation` before.
  std::uint64_t over_cap_in_flight = 0;
  /// Of the rest: the publisher says that it was shown without a look at the history.
  std::uint64_t over_cap_fail_open = 0;
};

struct AuditOptions {
  /// Only users whose id begins with this.
  std::string user_prefix;
  /// An event published less than this before another may not have been countable yet.
  std::chrono::milliseconds propagation{1000};
};

/// Compares what a topic holds with what the ledgers count, event by event, and tells how many
/// impressions went over the cap. Feed it every message in the order of each partition, then
/// compare.
class Audit {
 public:
  Audit(AuditOptions options, std::shared_ptr<const RuleSet> rules);

  /// `published_at`: the message's timestamp in Kafka. `fail_open`: it says that it was shown
  /// without a look at the history.
  void add(const events::Event& event, Instant published_at, bool fail_open);
  void add_skipped() noexcept;

  /// Reads the ledger of every user seen. Fails when Redis does not answer.
  Result<AuditReport> compare(RecordReader& records);

 private:
  struct Published {
    ledger::Entry entry;
    Instant published_at;
    bool fail_open = false;
  };
  using History = std::vector<Published>;

  void count_over_cap(const History& history);
  static void keep_distinct(History& history, AuditReport& report);
  Status compare_user(RecordReader& records, const std::string& user, const History& history);

  AuditOptions options_;
  std::shared_ptr<const RuleSet> rules_;
  std::map<std::string, History, std::less<>> users_;
  AuditReport report_;
};

}  // namespace fcap::cli
