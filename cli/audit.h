#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "events/event.h"
#include "ledger/ledger.h"

namespace fcap::cli {

/// What a comparison of a topic with the ledgers found.
///
/// Each message is of one class: `rejected`, `other_users`, `null_user`, `erasures`, `repeated` or
/// `produced`. Each event of `produced` is of one class too: it is in its user's ledger (these are
/// `counted` less `extra`), or it is missing for one of the reasons below, or it is `lost`.
struct AuditReport {
  std::uint64_t messages = 0;     ///< read from the topic
  std::uint64_t rejected = 0;     ///< not events
  std::uint64_t other_users = 0;  ///< of users that are not audited
  std::uint64_t null_user = 0;    ///< without a user: the updater skips them
  std::uint64_t erasures = 0;     ///< requests to erase an audited user
  std::uint64_t repeated = 0;     ///< messages that repeat an event
  /// How many of these lie more than five minutes from the event that they repeat. Such an id is no
  /// redelivery; the producer repeats it.
  std::uint64_t repeated_ids = 0;
  std::uint64_t produced = 0;  ///< distinct events of audited users
  std::uint64_t users = 0;
  std::uint64_t counted = 0;  ///< entries in the ledgers of these users

  std::uint64_t expired = 0;    ///< missing: older than the retention
  std::uint64_t in_future = 0;  ///< missing: their time was too far in the future to be accepted
  std::uint64_t erased = 0;     ///< missing: their user was erased
  std::uint64_t trimmed = 0;    ///< missing: their user's record was trimmed for its size
  std::uint64_t in_flight = 0;  ///< missing: published too recently to be expected
  std::uint64_t lost = 0;       ///< missing, and nothing explains it

  std::uint64_t extra = 0;          ///< entries that no event of the topic explains: counted twice
  std::uint64_t erasures_lost = 0;  ///< users whose record does not know their erasure
  std::uint64_t unreadable = 0;     ///< records; their users' events are of no class
  /// Events that were shown although the rules, applied to all events published before, say capped.
  std::uint64_t over_cap = 0;
  /// How many of these would have passed without the events published less than `propagation`
  /// before.
  std::uint64_t over_cap_in_flight = 0;
  /// How many of the rest were shown without a look at the history, as the publisher says.
  std::uint64_t over_cap_fail_open = 0;

  [[nodiscard]] bool nothing_audited() const noexcept { return produced == 0 && erasures == 0; }
  [[nodiscard]] bool exact() const noexcept {
    return lost == 0 && extra == 0 && erasures_lost == 0 && unreadable == 0;
  }
};

struct AuditOptions {
  /// Only users whose id begins with this.
  std::string user_prefix;
  /// An event published less than this before another, or before its record is read, may not have
  /// been countable yet.
  std::chrono::milliseconds propagation{1000};
  /// The updater's settings of the same names.
  std::chrono::milliseconds retention = kDefaultRetention;
  std::chrono::milliseconds allowed_future = std::chrono::minutes{5};
  std::size_t message_bytes_max = std::size_t{64} * 1024;
  std::vector<std::string> null_user_ids;
};

/// Compares what a topic holds with what the ledgers count, event by event, and tells how many
/// impressions went over the cap. Feed it every message in the order of each partition, then
/// compare.
class Audit {
 public:
  /// Reads a user's record; nullopt if the user has none.
  using ReadRecord = std::function<Result<std::optional<std::string>>(const std::string& user)>;
  using Clock = std::function<Instant()>;

  Audit(AuditOptions options, std::shared_ptr<const RuleSet> rules);

  /// `published_at`: the message's timestamp in Kafka. `fail_open`: it says that it was shown
  /// without a look at the history.
  void add(const events::Event& event, Instant published_at, bool fail_open);
  /// A message that is not an event.
  void add_rejected() noexcept;
  [[nodiscard]] bool too_large(std::string_view message) const noexcept {
    return message.size() > options_.message_bytes_max;
  }
  /// Whether the updater looks at the event further: it skips those without a user.
  [[nodiscard]] bool has_user(const events::Event& event) const noexcept {
    return !is_null_user(event.user_id);
  }

  /// Reads the record of every user seen. Fails when `read` does.
  Result<AuditReport> compare(const ReadRecord& read, const Clock& now);

 private:
  struct Published {
    ledger::Entry entry;
    Instant published_at;
    bool fail_open = false;
    bool in_future = false;
  };
  struct AuditedUser {
    std::vector<Published> history;
    std::optional<Instant> erased_until;  ///< what the topic demands
    Instant erasure_published_at;
  };

  [[nodiscard]] bool is_null_user(std::string_view user) const noexcept;
  static void keep_distinct(std::vector<Published>& history, AuditReport& report);
  void count_over_cap(const AuditedUser& user);
  void compare_user(const AuditedUser& user, const ledger::Ledger& ledger, Instant now);
  void classify_missing(const Published& event, const ledger::Ledger& ledger,
                        const AuditedUser& user, Instant now);

  AuditOptions options_;
  std::shared_ptr<const RuleSet> rules_;
  std::map<std::string, AuditedUser, std::less<>> users_;
  AuditReport report_;
};

}  // namespace fcap::cli
