#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/time.h>

#include "ledger/ledger.h"

namespace fcap::bench {

/// The users of every bench: 36-character ids, 10 campaigns with 3 impressions each within 30 days.
struct Population {
  std::size_t users = 100'000;
  std::size_t campaigns = 10;
  std::size_t impressions = 3;  ///< of each campaign
};

/// "00000000-0000-4000-8000-000000000042".
std::string user_id(std::size_t i);
std::string campaign_id(std::size_t i);

/// One user's impressions, the same in every layout; newest within the last day.
std::vector<ledger::Entry> impressions_of(const Population& population, std::size_t user,
                                          Instant now);

/// Two rules a campaign: 3 per 24 h for the campaign, 100 per 7 days for its advertiser.
std::shared_ptr<const RuleSet> make_rules(const Population& population);

}  // namespace fcap::bench
