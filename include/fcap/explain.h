#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/export.h>
#include <fcap/rule.h>
#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// What one rule has counted for a candidate, and what follows.
struct RuleAccount {
  /// Lives as long as the rule set, which the Explanation holds.
  const Rule* rule = nullptr;
  /// The id that the rule counts for: its target, or what "*" stands for here.
  std::string target = {};
  std::uint32_t count = 0;
  /// How many of `count` are reservations: expected, not confirmed.
  std::uint32_t reserved = 0;
  /// How many more would pass now; none where the rule has no limit.
  std::optional<std::uint32_t> left = {};
  /// Whether the rule stands in the way now (also for shadow rules, which never cap). A replaced
  /// rule does not.
  bool stands_in_way = false;
  /// The window's bounds at the instant of the answer: events in [counted_from, counted_until)
  /// count. A sliding window and a lifetime have no end of their own, and a fixed window that is
  /// not open has none either: counted_from is then the instant of the answer.
  Instant counted_from = {};
  std::optional<Instant> counted_until = {};
  /// When it no longer stands in the way, if no reservation is confirmed; the instant of the answer
  /// when it does not stand there now; none when never.
  std::optional<Instant> eligible_at = {};
  /// False: `count` may be too low, because events that the window reaches back to may be missing.
  bool complete = true;
  /// Set for a rule that another replaces for this user: that rule's id.
  std::string replaced_by = {};
};

/// The verdict of one candidate, with every rule behind it.
struct CandidateExplanation {
  std::string campaign = {};
  std::string creative = {};  ///< empty: none
  Verdict verdict = {};
  /// Both by the rules' ids; empty where the history could not be had.
  std::vector<RuleAccount> applicable = {};
  std::vector<RuleAccount> replaced = {};
};

/// The record that an explanation rests on.
struct RecordAccount {
  /// Its key in the store; empty: it was not read from one.
  std::string key = {};
  std::size_t bytes = 0;         ///< 0: the user has no record
  std::size_t entries = 0;       ///< events that it holds
  std::size_t reservations = 0;  ///< live or not
  /// How many entries, left-out ones included, only this process knows of yet
  /// (Checker::note_shown()).
  std::size_t noted = 0;
  /// Read from a replica, which may lack the latest events.
  bool stale = false;
  /// Entries later than the instant that was asked about, which do not count; none where it was
  /// not asked about one. When an entry arrived is not recorded, so a check that was made at that
  /// instant may have known of fewer.
  std::optional<std::size_t> left_out = {};
  /// The record was trimmed for size: what is older may be missing.
  std::optional<Instant> complete_since = {};
  /// Events before it may be missing, because they were lost and are being read again;
  /// Instant::max() where no updater's configuration is in the store. None: none is known to be.
  std::optional<Instant> missing_before = {};
};

/// Why one user gets the answers that he gets: what Checker::explain() gives, with every rule that
/// applies, what it has counted, what is left and until when, and the record that this rests on.
///
///     const fcap::Explanation why = checker.explain("u123", candidates, {.deadline = 1s});
///     std::cout << fcap::explanation_text(why);
///
/// Checker::explain() blocks as check() does, and may be called from any thread. It is for support
/// and debugging, not for the path of a request: it always reads the record, allocates at will, and
/// is not counted as a check. It fails with the reasons of a check, and never throws; out of memory
/// it answers kOverloaded, without candidates. With CheckOptions::now it explains that instant,
/// without the entries that are later (RecordAccount::left_out).
///
/// Thread safety: a value type. It may outlive the Checker.
struct Explanation {
  std::string user = {};
  Instant at = {};  ///< the instant that is explained
  /// As CheckResult::reason. Anything but kPassed: the history could not be had, and the candidates
  /// have verdicts alone.
  Reason reason = Reason::kPassed;
  /// Those applied; null where there were none.
  std::shared_ptr<const RuleSet> rules = {};
  std::shared_ptr<const SegmentSet> segments = {};
  /// The version of the time-zone data that calendars were made from, such as "2024a".
  std::string time_zone_data = {};
  RecordAccount record = {};
  /// In the order in which they were asked about.
  std::vector<CandidateExplanation> candidates = {};
};

/// As `fcap explain` prints it, in UTC: a line about the whole, and for each candidate one and two
/// per rule. Throws std::bad_alloc.
[[nodiscard]] FCAP_EXPORT std::string explanation_text(const Explanation& explanation);
/// As `fcap explain --json` prints it: an object on one line, without a newline (docs/cli.md).
/// Throws std::bad_alloc.
[[nodiscard]] FCAP_EXPORT std::string explanation_json(const Explanation& explanation);

}  // namespace fcap
