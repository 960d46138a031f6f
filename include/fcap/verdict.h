#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fcap/check_token.h>
#include <fcap/reason.h>
#include <fcap/rule_set.h>
#include <fcap/time.h>

namespace fcap {

/// What the ad server may show: a campaign, and the creative if it is already chosen. Views into
/// the caller's strings, which must outlive the call that they are given to. At most 256 bytes
/// each.
struct Candidate {
  std::string_view campaign;
  std::string_view creative = {};
};

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
  /// A hard rule applies to the candidate: whatever this verdict says, only a hard call keeps its
  /// limit. Also said without the history, as long as a rule set is loaded; not by the
  /// negative cache, whose candidates are capped.
  bool needs_reserve = false;
  /// When capped: reservations count, which are impressions that are expected and not confirmed.
  /// `eligible_at` is then the earliest that it can be: it may be later if some are confirmed.
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

/// What first_allowed() chose.
struct PickResult {
  /// Indices into the ranked candidates, ascending.
  std::vector<std::size_t> picked;
  /// kPassed when the choice rests on the history; otherwise why it was made without it.
  Reason reason = Reason::kPassed;
  /// As Verdict::stale: the history was read from a replica.
  bool stale = false;
  /// For the notes of these picks.
  CheckToken token = {};
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
  /// For notes and hard calls about what this check has let through. With CheckOptions::keep_record
  /// it holds the record, if the master was read.
  CheckToken token = {};
};

}  // namespace fcap
