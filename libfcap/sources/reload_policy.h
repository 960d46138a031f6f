#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fcap/segment_set.h>

/// What a refresher decides, apart from what it reads: pure, so that every case can be tested.
namespace fcap::sources {

/// What the decision looks at.
struct RuleSetSize {
  std::uint64_t version = 0;
  std::size_t rules = 0;
  std::size_t campaigns = 0;
};

struct ReloadPolicy {
  /// RuleSourceOptions::shrink_refused_below
  double shrink_refused_below = 0.5;
  /// RuleSourceOptions::accept_any_shrink
  bool accept_any_shrink = false;
  /// The source says that a shrink up to this version is meant; 0: of none.
  std::uint64_t accepted_version = 0;
};

struct ReloadDecision {
  bool accepted = true;
  /// Why it is refused, or what is odd about one that is accepted; empty: nothing.
  std::string remark;
};

/// Whether a valid rule set may take the place of the last good one. Refused: no rules where there
/// were some, and fewer rules than the policy's share. Catalogs of at least kCatalogGuardedFrom
/// campaigns are guarded in the same way. An older version is remarked on (a restored backup, most
/// likely) and accepted, because the source decides what it holds. For the same reason a shrink is
/// accepted that somebody has accepted at the source since the last good set.
[[nodiscard]] ReloadDecision decide_reload(const std::optional<RuleSetSize>& last,
                                           const RuleSetSize& next, const ReloadPolicy& policy);

/// The same for stored segments. Refused: a set in which a segment that had members is not even
/// named any more, and one with fewer members than the policy's share, from kMembersGuardedFrom on.
/// A segment that is still there, without members, was emptied on purpose.
[[nodiscard]] ReloadDecision decide_segments(const SegmentSet* last, const SegmentSet& next,
                                             const ReloadPolicy& policy);

/// Smaller segments are changed by hand.
inline constexpr std::uint64_t kMembersGuardedFrom = 20;

/// Smaller catalogs are changed by hand, where halving one is nothing special.
inline constexpr std::size_t kCatalogGuardedFrom = 20;

}  // namespace fcap::sources
