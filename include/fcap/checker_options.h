#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  /// A checksummed snapshot. With `postgres`: written after each load, read when PostgreSQL is
  /// gone. Alone: the source itself, read again when it changes. Empty: none.
  std::string snapshot_file = {};
  /// How often the version is looked at, give or take a tenth of it. 1 s to 1 h.
  std::chrono::milliseconds poll_interval{60'000};
  /// Also LISTEN, so that changes arrive at once. Holds a connection: for few processes.
  bool listen = false;
  /// A reload with fewer rules than this share of the last one is refused. 0 to 1; 0: never.
  double shrink_refused_below = 0.5;
  /// Take an empty or sharply shrunken rule set all the same.
  bool accept_any_shrink = false;
};

/// What a Checker remembers by itself, beside the store. Bounded; nothing of it outlives the
/// process.
struct LocalOptions {
  /// Impressions that note_shown() keeps at most, about 250 bytes each; the oldest make room. For n
  /// impressions a second that the process serves, n times `shown_for`. Of one user the 64 newest
  /// are kept. 0: note_shown() does nothing. At most 10 million.
  std::size_t shown_max = 100'000;
  /// How long an impression that does not turn up in the ledger is believed in. 1 s to 1 h.
  std::chrono::milliseconds shown_for{60'000};
  /// Capped verdicts that are kept until the instant at which they could end, 64 bytes each: a
  /// check whose candidates are all among them is answered without reading, and through an outage
  /// they stay capped. Exact (docs/semantics.md). 0: none are kept. At most 100 million.
  std::size_t cached_caps_max = 0;
  /// The longest that one is kept: for so long may the erasure of a user go unnoticed. 1 s to 24 h.
  std::chrono::milliseconds cached_caps_for{60'000};
};

/// Where stored segments come from; docs/segments.md describes both. Looked at as often as the
/// rules. At most one of the two; neither: there are those of Checker::set_segments() alone.
struct SegmentSourceOptions {
  /// The tables of the database that RuleSourceOptions::postgres names.
  bool postgres = false;
  /// A directory of files: NAME.ids, a user id a line, and NAME.roaring64, bitmaps. Empty: none.
  std::string directory = {};
};

/// How a Checker behaves. Every field has the value that suits most hosts.
struct CheckerOptions {
  /// What to do where no user id is given, or a null one.
  enum class NoUserPolicy : std::uint8_t { kAllow, kCap };

  // --- Parts.

  RedisOptions redis = {};
  /// Used instead of Redis where given.
  std::shared_ptr<Store> store = {};
  RuleSourceOptions rules = {};
  SegmentSourceOptions segments = {};

  // --- Behaviour. Key prefix and retention must be the updater's.

  /// Keys are "<key_prefix>:{<user id>}". No braces.
  std::string key_prefix = "fcap";
  /// How long events are kept; 1 h to 400 days.
  std::chrono::milliseconds retention = std::chrono::days{32};
  /// User ids that stand for "unknown"; neither read nor written. The empty id always does.
  std::vector<std::string> null_user_ids = {"00000000-0000-0000-0000-000000000000"};
  NoUserPolicy no_user = NoUserPolicy::kAllow;
  /// Where the history cannot be had: true allows (fail-open), false caps.
  bool fail_open = true;
  /// The longest that check() takes to answer, where CheckOptions has none. 100 µs to 60 s.
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
