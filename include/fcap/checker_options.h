#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/redis_options.h>
#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

namespace fcap {

/// Where the rules come from. The first source that answers is used; a set of rules given by
/// Checker::set_rules() needs none.
struct RuleSourceOptions {
  /// A libpq connection string; empty: PostgreSQL is not used.
  std::string postgres = {};
  /// A checksummed snapshot. With `postgres`: written after each load, and read when PostgreSQL
  /// cannot be reached. Alone: the source itself, read again when it changes. Empty: none.
  std::string snapshot_file = {};
  /// How often the source is checked for a new version, give or take a tenth. 1 s to 1 h.
  std::chrono::milliseconds poll_interval{60'000};
  /// Also LISTEN, so that changes arrive at once. Holds a connection: for few processes.
  bool listen = false;
  /// A reload with fewer rules than this share of the last one is refused. 0 to 1; 0: never.
  double shrink_refused_below = 0.5;
  /// Accept a rule set even if it is empty or has shrunk sharply.
  bool accept_any_shrink = false;
};

/// What a Checker remembers in addition to the store. It is bounded, and lost when the process
/// ends.
struct LocalOptions {
  /// How many impressions note_shown() keeps, at about 250 bytes each; the oldest are dropped
  /// first. A process that serves n impressions per second needs n times `shown_for`. The 64 newest
  /// of a user are kept. 0: note_shown() does nothing. At most 10 million.
  std::size_t shown_max = 100'000;
  /// How long an impression counts that does not appear in the ledger. 1 s to 1 h.
  std::chrono::milliseconds shown_for{60'000};
  /// How many capped verdicts are kept, each until the instant at which it could end, at 64 bytes.
  /// A check whose candidates are all among them is answered without a read, and in an outage they
  /// stay capped. Exact (docs/semantics.md). 0: none are kept. At most 100 million.
  std::size_t cached_caps_max = 0;
  /// The longest that a verdict is kept, and so the longest that the erasure of a user may go
  /// unnoticed. 1 s to 24 h.
  std::chrono::milliseconds cached_caps_for{60'000};
};

/// Where stored segments come from; docs/segments.md describes both. They are checked as often
/// as the rules. At most one may be set; without one, only Checker::set_segments() gives segments.
struct SegmentSourceOptions {
  /// The tables of the database that RuleSourceOptions::postgres names.
  bool postgres = false;
  /// A directory of files: NAME.ids, one user id per line, and NAME.roaring64, bitmaps. Empty:
  /// none.
  std::string directory = {};
};

/// How a Checker behaves. The defaults suit most hosts.
struct CheckerOptions {
  /// What to answer when the user id is missing or null.
  enum class NoUserPolicy : std::uint8_t { kAllow, kCap };

  // --- Parts.

  RedisOptions redis = {};
  /// Used instead of Redis where given.
  std::shared_ptr<Store> store = {};
  RuleSourceOptions rules = {};
  SegmentSourceOptions segments = {};

  // --- Behaviour. Key prefix and retention must be the updater's.

  /// Keys are "<key_prefix>:{<user id>}". No braces.
  std::string key_prefix = kDefaultKeyPrefix;
  /// How long events are kept; 1 h to 400 days.
  std::chrono::milliseconds retention = kDefaultRetention;
  /// User ids that stand for "unknown"; neither read nor written. The empty id always does.
  std::vector<std::string> null_user_ids = {kNullUserId};
  NoUserPolicy no_user = NoUserPolicy::kAllow;
  /// When the history cannot be read: true allows (fail-open), false caps.
  bool fail_open = true;
  /// The deadline of a check whose CheckOptions give none. 100 µs to 60 s.
  std::chrono::microseconds deadline{5000};
  LocalOptions local = {};

  // --- Seams.

  /// Runs completion callbacks; empty: they run on an I/O thread.
  std::function<void(std::function<void()>)> executor = {};
  /// The time of a check that gives none; empty: the system clock.
  std::function<Instant()> clock = {};
  LogCallback log = {};
};

}  // namespace fcap
