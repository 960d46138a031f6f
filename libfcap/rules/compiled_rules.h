#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fcap/rule.h>
#include <fcap/rule_set.h>

#include "rules/calendar.h"
#include "rules/id_map.h"
#include "rules/zone.h"

namespace fcap::rules {

/// "None", for every index below.
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
/// An instant that never comes.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

inline constexpr std::size_t kScopeCount = 5;
inline constexpr std::size_t kEventTypeCount = 4;

/// A rule as evaluation sees it. The rules of one target lie together, sorted so that those which
/// can replace each other (same type, mode and window: one key) are neighbours: first the segments'
/// ones by (limit, id), the smallest limit in front, then the general ones.
struct CompiledRule {
  std::uint32_t limit = 0;
  std::uint32_t window = 0;       ///< index into windows()
  std::uint32_t source = 0;       ///< index into RuleSet::rules()
  std::uint32_t segment = kNone;  ///< index into the segments; kNone: a general rule
  std::uint32_t life = kNone;     ///< index into lives(); kNone: always in force
  EventType type = EventType::kImpression;
  bool shadow = false;
  bool unlimited = false;      ///< limit NULL
  bool opens_key : 1 = false;  ///< the first rule of its key
  bool hard : 1 = false;       ///< hard, enforced, and with a limit

  /// One bit for each (type, mode): the key by which a naming rule puts a default aside.
  [[nodiscard]] std::uint8_t kind_bit() const noexcept {
    return static_cast<std::uint8_t>(
        1U << (static_cast<unsigned>(type) + (shadow ? kEventTypeCount : 0)));
  }
};

/// When a rule with a start or an end is in force: [start_ms, end_ms).
struct RuleLife {
  std::int64_t start_ms = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ms = kNever;
};

struct CompiledWindow {
  Window::Kind kind = Window::Kind::kSliding;
  std::uint32_t calendar = kNone;  ///< index into calendars()
  std::int64_t length_ms = 0;      ///< lifetime: the retention; calendar: unused
};

/// The rules of one target (or, for a default, of "*").
struct TargetRules {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  /// kind_bit()s of the rules that are in force always and for everybody.
  std::uint8_t always = 0;
  /// No rule has a segment, a start or an end: all of them apply.
  bool plain : 1 = true;
  /// No enforced rule has a start, an end or a fixed window. So once a rule passes, it goes on
  /// passing for as long as nothing is added, and the first such instant need not be searched for.
  bool settled : 1 = true;
  /// A rule, enforced or shadow, has a limit above 0: its verdicts depend on what was recorded.
  bool reads_history : 1 = false;
  /// A rule is hard.
  bool hard : 1 = false;
};

/// What the catalog and the rules say of a campaign.
struct CompiledCampaign {
  TargetRules rules;
  /// Index into the advertisers; kNone also where no rule could look at it.
  std::uint32_t advertiser = kNone;
  std::uint32_t groups_begin = 0;
  std::uint32_t groups_count = 0;
};

/// The form of a rule set that evaluation reads: flat arrays and two hash tables. Holds views into
/// the SharedSpec that it was compiled from.
class CompiledRules {
 public:
  [[nodiscard]] std::span<const CompiledRule> rules_of(const TargetRules& target) const noexcept {
    return {rules.data() + target.begin, target.count};
  }
  [[nodiscard]] const TargetRules& defaults_of(Scope scope) const noexcept {
    return defaults[static_cast<std::size_t>(scope)];
  }
  [[nodiscard]] std::span<const std::uint32_t> groups_of(
      const CompiledCampaign& campaign) const noexcept {
    return {group_members.data() + campaign.groups_begin, campaign.groups_count};
  }
  [[nodiscard]] CalendarPeriod period(const CompiledWindow& window,
                                      std::int64_t instant_ms) const noexcept {
    const Calendar& calendar = calendars[window.calendar];
    return calendar_period(calendar, zones[calendar.zone], instant_ms);
  }

  /// Differs between any two rule sets of this process.
  std::uint64_t serial = 0;
  std::int64_t retention_ms = 0;

  std::vector<CompiledRule> rules;
  std::vector<RuleLife> lives;
  std::vector<CompiledWindow> windows;
  std::vector<Calendar> calendars;
  std::vector<Zone> zones;
  std::string zone_data_version;

  IdMap<CompiledCampaign> campaigns;
  IdMap<TargetRules> creatives;
  std::vector<TargetRules> advertisers;
  std::vector<TargetRules> groups;
  std::vector<std::string_view> advertiser_names;
  std::vector<std::string_view> group_names;
  std::vector<std::uint32_t> group_members;  ///< of all campaigns, one after the other
  TargetRules user;
  TargetRules defaults[kScopeCount];
  /// As TargetRules::reads_history, of a user rule or a default, which may apply to any candidate.
  bool any_reads_history = false;
  bool any_hard = false;

  std::unordered_map<std::string_view, std::uint32_t> segments;
};

}  // namespace fcap::rules
