#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/time.h>

#include "cli/simulate/frequencies.h"
#include "cli/simulate/impression_log.h"
#include "cli/simulate/item_names.h"
#include "cli/simulate/log_reading.h"
#include "cli/simulate/progress.h"
#include "rules/zone.h"

namespace fcap::cli {

struct RuleCost {
  std::string id;
  std::string description;  ///< "at most 3 impressions of each campaign in any 24h"
  std::uint64_t blocked = 0;
};

struct CampaignOutcome {
  std::string id;
  std::string advertiser;  ///< empty: not known
  std::uint64_t impressions = 0;
  std::uint64_t shown = 0;
  std::uint64_t reach_before = 0;
  std::uint64_t reach = 0;  ///< users to whom it was shown at least once
};

/// The campaigns of one advertiser together.
struct AdvertiserOutcome {
  std::string id;
  std::uint64_t impressions = 0;
  std::uint64_t shown = 0;
  std::uint64_t reach_before = 0;
  std::uint64_t reach = 0;
};

/// What one rule set would have made of the log. A blocked impression does not count for those
/// after it.
struct SimulationOutcome {
  std::string name;
  std::uint64_t version = 0;
  std::vector<std::string> warnings;
  bool any_rule_fits = true;  ///< false: no rule can apply to any campaign or creative of the log
  std::uint64_t shown = 0;
  std::uint64_t blocked = 0;
  std::uint64_t shadow_blocked = 0;  ///< a shadow rule stood in the way
  /// Clicks and the like that did not happen, because their impression was blocked.
  std::uint64_t follow_ups_blocked = 0;
  std::uint64_t reach = 0;
  Frequencies per_user{};
  std::uint64_t pairs = 0;
  Frequencies per_pair{};
  std::vector<RuleCost> rules;                 ///< all, costliest first
  std::vector<CampaignOutcome> campaigns;      ///< all, busiest first
  std::vector<AdvertiserOutcome> advertisers;  ///< those that the catalog names, busiest first
  std::vector<std::uint64_t> shown_per_day;    ///< as Simulation::per_day
  std::optional<std::uint32_t> sweep_limit;    ///< the limit that --sweep gave the rules
};

/// The log as it was, and what each rule set would have made of it.
struct Simulation {
  std::vector<std::string> sources;
  std::uint64_t impressions = 0;
  std::uint64_t other_events = 0;
  std::uint64_t repeated = 0;
  std::uint64_t without_user = 0;
  Instant first_at;
  Instant last_at;
  std::uint64_t reach = 0;
  Frequencies per_user{};
  std::uint64_t pairs = 0;
  Frequencies per_pair{};
  std::uint64_t campaigns = 0;
  /// The report has this zone's dates and times of day.
  std::string time_zone = "UTC";
  std::shared_ptr<const rules::Zone> zone;
  std::int64_t first_day = 0;          ///< since 1970, local
  std::vector<std::uint64_t> per_day;  ///< impressions, from first_day on
  Instant made_at;                     ///< when the report was made
  Rejections rejections;
  ItemNames names;
  std::optional<double> cpm;  ///< the price of a thousand impressions, in whatever currency
  std::vector<SimulationOutcome> outcomes;
};

struct NamedRules {
  std::string name;
  std::shared_ptr<const RuleSet> rules;
  std::optional<std::uint32_t> sweep_limit = std::nullopt;
};

/// How many campaigns the page and the JSON tell of, and how many rules the page; the CSV has all
/// campaigns.
inline constexpr std::size_t kBusiestMax = 1000;

/// Everything about the log itself.
[[nodiscard]] Simulation describe(const ImpressionLog& log,
                                  std::shared_ptr<const rules::Zone> zone);

/// Replays the log, put in order before, through one rule set. `log_as_it_was` is what describe()
/// gave. `stored`: who is in which segment, all the time; null: nobody is known to be in any.
[[nodiscard]] SimulationOutcome replay(const ImpressionLog& log, const Simulation& log_as_it_was,
                                       const NamedRules& rules, const SegmentSet* stored,
                                       Progress& progress);

[[nodiscard]] std::string description_of(const Rule& rule);

void print_text(const Simulation& simulation, std::ostream& out);
void print_json(const Simulation& simulation, std::ostream& out);
/// Every campaign under every rule set, one per line.
[[nodiscard]] std::string to_csv(const Simulation& simulation);
/// page.html with the report in it: one page that needs nothing but itself.
[[nodiscard]] std::string to_html(const Simulation& simulation);

}  // namespace fcap::cli
