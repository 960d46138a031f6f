#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "cli/simulate/advertisers.h"
#include "cli/simulate/simulation.h"
#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"
#include "rules/keep_needed.h"
#include "rules/rule_set_access.h"
#include "sources/segment_warnings.h"

namespace fcap::cli {
namespace {

using Kind = LogRow::Kind;

std::vector<std::uint64_t> hashes_of(const Interner& names) {
  std::vector<std::uint64_t> hashes(names.size());
  for (std::uint32_t i = 0; i < hashes.size(); ++i) hashes[i] = ledger::id_hash(names.name(i));
  return hashes;
}

// The ledger of one user at a time, kept small: of heavy users, who would make each step
// costlier than the one before, entries that no rule can need any more are left out now and then.
class SimulatedLedger {
 public:
  explicit SimulatedLedger(std::shared_ptr<const RuleSet> rules)
      : rules_(std::move(rules)), needed_(rules_) {
    for (const Rule& rule : rules_->rules()) {
      has_fixed_ = has_fixed_ || rule.window.kind == Window::Kind::kFixed;
    }
  }

  void clear() noexcept {
    ledger_.clear();
    trim_at_ = kTrimMin;
  }
  void add(const ledger::Entry& entry) {
    ledger_.merge(entry);
    if (ledger_.size() >= trim_at_) trim(entry.time);
  }
  void erase_before(Instant until) { ledger_.erase_before(until); }
  [[nodiscard]] const ledger::Ledger& entries() const noexcept { return ledger_; }

 private:
  static constexpr std::size_t kTrimMin = 512;

  // Windows end at `now` or later and reach no further than the retention. Beyond the newest
  // limit + 1 of a scope no verdict changes either, except with fixed windows: there an entry says
  // when a window opened.
  void trim(Instant now) {
    keep_.assign(ledger_.size(), has_fixed_);
    if (!has_fixed_) needed_.mark_needed(ledger_, keep_);
    for (std::size_t i = 0; i < keep_.size(); ++i) {
      keep_[i] = keep_[i] && ledger_.times()[i] > now - rules_->retention();
    }
    ledger_.retain(keep_);
    trim_at_ = std::max(kTrimMin, 2 * ledger_.size());
  }

  std::shared_ptr<const RuleSet> rules_;
  rules::KeepNeeded needed_;
  bool has_fixed_ = false;
  ledger::Ledger ledger_;
  std::size_t trim_at_ = kTrimMin;
  std::vector<bool> keep_;
};

// Whether some rule can apply to a campaign or creative of the log.
bool any_rule_fits(const ImpressionLog& log, const RuleSet& rules) {
  const auto names_of = [](const Interner& ids) {
    std::set<std::string, std::less<>> names;
    for (std::uint32_t i = 0; i < ids.size(); ++i) names.emplace(ids.name(i));
    names.erase("");
    return names;
  };
  const auto campaigns = names_of(log.campaigns());
  const auto creatives = names_of(log.creatives());
  std::set<std::string, std::less<>> advertisers;
  std::set<std::string, std::less<>> groups;
  for (const Campaign& campaign : rules.campaigns()) {
    if (!campaigns.contains(campaign.id)) continue;
    if (!campaign.advertiser_id.empty()) advertisers.insert(campaign.advertiser_id);
    groups.insert(campaign.groups.begin(), campaign.groups.end());
  }
  return std::ranges::any_of(rules.rules(), [&](const Rule& rule) {
    const auto in = [&rule](const auto& ids) {
      return rule.target == "*" ? !ids.empty() : ids.contains(rule.target);
    };
    switch (rule.scope) {
      case Scope::kCampaign:
        return in(campaigns);
      case Scope::kCreative:
        return in(creatives);
      case Scope::kAdvertiser:
        return in(advertisers);
      case Scope::kGroup:
        return in(groups);
      case Scope::kUser:
        break;
    }
    return true;
  });
}

std::int64_t day_of(const Simulation& simulation, const LogRow& row) {
  return simulation.zone->day_at(to_ms(row.time())) - simulation.first_day;
}

class LogReplay {
 public:
  LogReplay(const ImpressionLog& log, const Simulation& log_as_it_was, const NamedRules& rules,
            const SegmentSet* stored)
      : log_(log),
        log_as_it_was_(log_as_it_was),
        rules_(*rules.rules),
        stored_(stored),
        ledger_(rules.rules),
        campaign_hashes_(hashes_of(log.campaigns())),
        creative_hashes_(hashes_of(log.creatives())),
        before_(log.campaigns().size()),
        after_(log.campaigns().size()),
        campaigns_(log.campaigns().size()),
        advertisers_(log, *rules.rules) {
    outcome_.name = rules.name;
    outcome_.sweep_limit = rules.sweep_limit;
    outcome_.shown_per_day.assign(log_as_it_was.per_day.size(), 0);
    outcome_.version = rules_.version();
    outcome_.warnings = rules_.warnings();
    outcome_.any_rule_fits = any_rule_fits(log, rules_);
    for (const Rule& rule : rules_.rules()) {
      rule_index_.emplace(rule.id, outcome_.rules.size());
      outcome_.rules.push_back({.id = rule.id, .description = description_of(rule), .blocked = 0});
    }
    if (stored_ != nullptr) {
      for (std::string& warning : sources::segment_warnings(rules_, *stored_)) {
        outcome_.warnings.push_back(std::move(warning));
      }
    } else if (!rules::RuleSetAccess::compiled(rules_).segments.empty()) {
      outcome_.warnings.emplace_back(
          "no segments are loaded (--segments): rules for a segment apply to nobody");
    }
  }

  void add_user(std::span<const LogRow> events) {
    ledger_.clear();
    blocked_ids_.clear();
    shown_to_user_ = 0;
    for (const LogRow& row : events) add(row);
    if (shown_to_user_ > 0) ++outcome_.reach;
    outcome_.shown += shown_to_user_;
    outcome_.per_user.add(shown_to_user_);
    before_.drain([&](std::uint32_t campaign, std::uint32_t count) {
      campaigns_[campaign].impressions += count;
      ++campaigns_[campaign].reach_before;
      advertisers_.add_before(campaign, count);
    });
    after_.drain([&](std::uint32_t campaign, std::uint32_t count) {
      campaigns_[campaign].shown += count;
      ++campaigns_[campaign].reach;
      ++outcome_.pairs;
      outcome_.per_pair.add(count);
      advertisers_.add_after(campaign, count);
    });
    advertisers_.end_user();
  }

  SimulationOutcome finish() {
    std::stable_sort(outcome_.rules.begin(), outcome_.rules.end(),
                     [](const RuleCost& a, const RuleCost& b) { return a.blocked > b.blocked; });
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < campaigns_.size(); ++i) {
      if (campaigns_[i].impressions > 0) order.push_back(i);
    }
    // Not by their order in the log: a topic's partitions come in any order.
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (campaigns_[a].impressions != campaigns_[b].impressions) {
        return campaigns_[a].impressions > campaigns_[b].impressions;
      }
      return log_.campaigns().name(a) < log_.campaigns().name(b);
    });
    for (const std::uint32_t i : order) {
      campaigns_[i].id = log_.campaigns().name(i);
      campaigns_[i].advertiser = advertisers_.of(i);
      outcome_.campaigns.push_back(std::move(campaigns_[i]));
    }
    outcome_.advertisers = advertisers_.busiest_first();
    return std::move(outcome_);
  }

 private:
  void add(const LogRow& row) {
    if (row.kind() == Kind::kErasure) {
      ledger_.erase_before(row.time());
      return;
    }
    const ledger::Entry entry{.time = row.time(),
                              .campaign = campaign_hashes_[row.campaign],
                              .creative = creative_hashes_[row.creative],
                              .type = static_cast<EventType>(row.kind()),
                              .fingerprint = row.fingerprint};
    if (row.kind() == Kind::kImpression) {
      before_.add(row.campaign);
      if (may_be_shown(entry, log_.users().name(row.user))) {
        ledger_.add(entry);
        after_.add(row.campaign);
        ++outcome_.shown_per_day[static_cast<std::size_t>(day_of(log_as_it_was_, row))];
        ++shown_to_user_;
        return;
      }
      ++outcome_.blocked;
      if (log_.has_event_ids()) blocked_ids_.insert(id_of(row));
    } else if (blocked_ids_.contains(id_of(row))) {
      ++outcome_.follow_ups_blocked;
    } else {
      ledger_.add(entry);
    }
  }

  static std::uint64_t id_of(const LogRow& row) noexcept {
    return std::uint64_t{row.campaign} << 32U | row.fingerprint;
  }

  bool may_be_shown(const ledger::Entry& entry, std::string_view user) {
    const rules::CandidateKey candidate{.campaign = entry.campaign, .creative = entry.creative};
    Verdict verdict;
    outcome_.shadow_blocked += evaluator_.evaluate({.rules = rules_,
                                                    .ledger = ledger_.entries(),
                                                    .now = entry.time,
                                                    .segments = {},
                                                    .stored = stored_,
                                                    .user = user},
                                                   {&candidate, 1}, {&verdict, 1});
    if (verdict.allowed) return true;
    ++outcome_.rules[rule_index_.find(verdict.rule_id)->second].blocked;
    return false;
  }

  const ImpressionLog& log_;
  const Simulation& log_as_it_was_;
  const RuleSet& rules_;
  const SegmentSet* stored_;
  rules::Evaluator evaluator_;
  SimulatedLedger ledger_;
  std::vector<std::uint64_t> campaign_hashes_;
  std::vector<std::uint64_t> creative_hashes_;
  CampaignCounts before_;
  CampaignCounts after_;
  std::vector<CampaignOutcome> campaigns_;
  Advertisers advertisers_;
  std::unordered_map<std::string_view, std::size_t> rule_index_;
  std::unordered_set<std::uint64_t> blocked_ids_;
  std::uint64_t shown_to_user_ = 0;
  SimulationOutcome outcome_;
};

}  // namespace

Simulation describe(const ImpressionLog& log, std::shared_ptr<const rules::Zone> zone) {
  Simulation simulation;
  simulation.zone = std::move(zone);
  std::map<std::int64_t, std::uint64_t> per_day;
  simulation.repeated = log.repeated_count();
  simulation.without_user = log.without_user_count();
  simulation.first_at = Instant::max();
  simulation.last_at = Instant::min();
  CampaignCounts counts(log.campaigns().size());
  std::vector<bool> seen(log.campaigns().size(), false);
  for (std::size_t user = 0; user < log.user_count(); ++user) {
    std::uint64_t of_user = 0;
    for (const LogRow& row : log.events_of(user)) {
      if (row.kind() != Kind::kImpression) {
        ++simulation.other_events;
        continue;
      }
      ++of_user;
      counts.add(row.campaign);
      seen[row.campaign] = true;
      simulation.first_at = std::min(simulation.first_at, row.time());
      simulation.last_at = std::max(simulation.last_at, row.time());
      ++per_day[simulation.zone->day_at(to_ms(row.time()))];
    }
    simulation.impressions += of_user;
    if (of_user > 0) ++simulation.reach;
    simulation.per_user.add(of_user);
    counts.drain([&](std::uint32_t /*campaign*/, std::uint32_t count) {
      ++simulation.pairs;
      simulation.per_pair.add(count);
    });
  }
  simulation.campaigns = static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), true));
  if (per_day.empty()) return simulation;
  simulation.first_day = per_day.begin()->first;
  simulation.per_day.assign(
      static_cast<std::size_t>(per_day.rbegin()->first - simulation.first_day) + 1, 0);
  for (const auto& [day, count] : per_day) {
    simulation.per_day[static_cast<std::size_t>(day - simulation.first_day)] = count;
  }
  return simulation;
}

SimulationOutcome replay(const ImpressionLog& log, const Simulation& log_as_it_was,
                         const NamedRules& rules, const SegmentSet* stored, Progress& progress) {
  constexpr std::size_t kEventsPerReport = 8192;
  progress.begin("Replaying under " + rules.name);
  LogReplay replay(log, log_as_it_was, rules, stored);
  std::size_t done = 0;
  std::size_t report_at = kEventsPerReport;
  for (std::size_t user = 0; user < log.user_count(); ++user) {
    replay.add_user(log.events_of(user));
    done += log.events_of(user).size();
    if (done < report_at) continue;
    report_at = done + kEventsPerReport;
    progress.report(done, log.size());
  }
  return replay.finish();
}

}  // namespace fcap::cli
