#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/rule_set.h>
#include <fcap/time.h>

namespace fcap {

namespace checker {
struct KeptRecord;
}

/// What the ad server may show: a campaign, and the creative if it is already chosen. Views into
/// the caller's strings, which must outlive the call that they are given to. At most 256 bytes
/// each.
struct Candidate {
  std::string_view campaign;
  std::string_view creative = {};
};

/// Why a verdict is as it is. All but kPassed and kCapped are answers without the user's history.
enum class Reason : std::uint8_t {
  kPassed,       ///< no enforced rule in force stands in the way
  kCapped,       ///< `rule_id` stands in the way
  kNoUser,       ///< the user id is empty or configured as null
  kNoRules,      ///< no rule set has been loaded yet
  kTimeout,      ///< the store did not answer before the deadline
  kUnavailable,  ///< the store cannot be reached, or answered with an error
  kBreakerOpen,  ///< the store failed repeatedly and is being left alone
  kOverloaded,   ///< a bounded queue is full, or memory has run out
  kUndecodable,  ///< the user's record is not one that this version can read
  kForked,       ///< this process is a fork of the one that made the Checker
  kShutdown,     ///< the Checker is being destroyed
  kReentrant,    ///< a blocking check from inside a callback
  kInvalid,      ///< an argument is outside its range (an id over 256 bytes, a candidate without a
                 ///< campaign)
};

/// A word for a reason, as used in JSON and metrics: "passed", "capped", "no_user", "timeout"…
[[nodiscard]] FCAP_EXPORT std::string_view to_string(Reason reason) noexcept;

/// The answer for one candidate.
struct Verdict {
  bool allowed = true;
  Reason reason = Reason::kPassed;
  /// False when the counts may be too low: the record was trimmed, not read, or lacks events that
  /// were lost, or that a replica does not have yet.
  bool complete = true;
  /// Read from a replica (RedisOptions::replica_reads), which may lack the latest events: where
  /// events were counted, `complete` is false. A candidate that it says is capped is capped.
  bool stale = false;
  /// Given by the negative cache, without reading: capped for certain by `rule_id`, at least until
  /// `eligible_at`. A read could find a higher count, a later instant, and another rule.
  bool cached = false;
  /// A shadow rule stands in the way; it never caps.
  bool shadow_capped = false;
  /// A hard rule applies to the candidate: whatever this verdict says, only reserve() or record()
  /// keeps its limit. Also said without the history, as long as a rule set is loaded; not by the
  /// negative cache, whose candidates are capped.
  bool needs_reserve = false;
  /// When capped: reservations count, impressions that are expected and not confirmed. Then
  /// `eligible_at` is only the earliest instant there can be, the one if none is confirmed.
  bool provisional = false;
  /// When capped: the enforced rule with the latest eligible_at, its count and its limit. The view
  /// lives as long as the rule set, which the CheckResult holds. Reservations are in the count.
  std::string_view rule_id = {};
  std::uint32_t count = 0;
  std::uint32_t limit = 0;
  /// The earliest instant, at or after the check's, from which the candidate passes if nothing more
  /// is shown; none when that is never.
  std::optional<Instant> eligible_at = {};
  /// When capped: events since this instant, included, count for that rule; for a lifetime rule,
  /// where the retention begins.
  std::optional<Instant> counted_since = {};
};

/// What a check has seen of the user's record, for shared notes.
struct RecordSeen {
  bool known = false;              ///< the record was read; without a record, the rest is 0
  std::uint32_t bytes = 0;         ///< how long it is
  std::uint32_t reservations = 0;  ///< how many are live
};

/// What first_allowed() chose.
struct PickResult {
  /// Indices into the ranked candidates, ascending.
  std::vector<std::size_t> picked;
  /// kPassed when the choice rests on the history; otherwise why it was made without it.
  Reason reason = Reason::kPassed;
  /// As Verdict::stale: the history was read from a replica.
  bool stale = false;
  /// For Checker::note_shown() with a SharedNote.
  RecordSeen seen = {};
};

/// The verdicts of one check, in the order of its candidates.
struct CheckResult {
  std::vector<Verdict> verdicts;
  /// kPassed when the verdicts rest on the history; otherwise why they were given without it. Those
  /// that say kCapped all the same are certain: by the negative cache, by what this process has
  /// shown, or by a limit of 0.
  Reason reason = Reason::kPassed;
  /// The rule set that was applied; keeps the verdicts' rule ids alive.
  std::shared_ptr<const RuleSet> rules;
  /// For Checker::note_shown() with a SharedNote.
  RecordSeen seen = {};
  /// With CheckOptions::keep_record: the record, for ReserveOptions::after; at most as long as a
  /// record is. Null where the master was not read.
  std::shared_ptr<const checker::KeptRecord> record = {};
};

}  // namespace fcap
