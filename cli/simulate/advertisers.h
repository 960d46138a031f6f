#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fcap/rule_set.h>

#include "cli/simulate/impression_log.h"
#include "cli/simulate/simulation.h"

namespace fcap::cli {

/// Counts by campaign (or advertiser) of one user at a time, without a table to clear between
/// users.
class CampaignCounts {
 public:
  explicit CampaignCounts(std::size_t campaigns) : counts_(campaigns, 0) {}

  void add(std::uint32_t campaign, std::uint32_t count = 1) {
    if (counts_[campaign] == 0) touched_.push_back(campaign);
    counts_[campaign] += count;
  }

  /// Calls visit(campaign, count) for each, and forgets them.
  template <typename Visit>
  void drain(Visit&& visit) {
    for (const std::uint32_t campaign : touched_) {
      visit(campaign, counts_[campaign]);
      counts_[campaign] = 0;
    }
    touched_.clear();
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> touched_;
};

/// Which campaign of the log is whose, as the catalog has it.
class Advertisers {
 public:
  Advertisers(const ImpressionLog& log, const RuleSet& rules)
      : of_campaign_(log.campaigns().size(), kNobody) {
    std::unordered_map<std::string_view, std::string_view> catalog;
    for (const Campaign& campaign : rules.campaigns()) {
      if (!campaign.advertiser_id.empty()) catalog.emplace(campaign.id, campaign.advertiser_id);
    }
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < of_campaign_.size(); ++i) {
      const auto known = catalog.find(log.campaigns().name(i));
      if (known == catalog.end()) continue;
      const auto [number, is_new] =
          numbers.try_emplace(known->second, static_cast<std::uint32_t>(outcomes_.size()));
      if (is_new) outcomes_.push_back({.id = std::string(known->second)});
      of_campaign_[i] = number->second;
    }
    before_ = CampaignCounts(outcomes_.size());
    after_ = CampaignCounts(outcomes_.size());
  }

  void add_before(std::uint32_t campaign, std::uint32_t count) {
    if (of_campaign_[campaign] != kNobody) before_.add(of_campaign_[campaign], count);
  }
  void add_after(std::uint32_t campaign, std::uint32_t count) {
    if (of_campaign_[campaign] != kNobody) after_.add(of_campaign_[campaign], count);
  }
  void end_user() {
    before_.drain([&](std::uint32_t i, std::uint32_t count) {
      outcomes_[i].impressions += count;
      ++outcomes_[i].reach_before;
    });
    after_.drain([&](std::uint32_t i, std::uint32_t count) {
      outcomes_[i].shown += count;
      ++outcomes_[i].reach;
    });
  }

  [[nodiscard]] std::string of(std::uint32_t campaign) const {
    const std::uint32_t number = of_campaign_[campaign];
    return number == kNobody ? std::string() : outcomes_[number].id;
  }
  [[nodiscard]] std::vector<AdvertiserOutcome> busiest_first() const {
    std::vector<AdvertiserOutcome> all = outcomes_;
    std::erase_if(all, [](const auto& outcome) { return outcome.impressions == 0; });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.impressions != b.impressions ? a.impressions > b.impressions : a.id < b.id;
    });
    return all;
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  std::vector<std::uint32_t> of_campaign_;
  std::vector<AdvertiserOutcome> outcomes_;
  CampaignCounts before_{0};
  CampaignCounts after_{0};
};

}  // namespace fcap::cli
