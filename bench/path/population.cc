#include "path/population.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "ledger/ids.h"

namespace fcap::bench {

std::string user_id(std::size_t i) {
  char text[40];
  std::snprintf(text, sizeof text, "00000000-0000-4000-8000-%012zu", i);
  return text;
}

std::string campaign_id(std::size_t i) {
  return "campaign-" + std::to_string(i);
}

std::vector<ledger::Entry> impressions_of(const Population& population, std::size_t user,
                                          Instant now) {
  std::mt19937_64 random(user);
  std::uniform_int_distribution<std::int64_t> age_ms(0, std::int64_t{30} * 86'400'000);
  std::vector<ledger::Entry> entries;
  for (std::size_t c = 0; c < population.campaigns; ++c) {
    for (std::size_t i = 0; i < population.impressions; ++i) {
      entries.push_back({.time = now - std::chrono::milliseconds(age_ms(random)),
                         .campaign = ledger::id_hash(campaign_id(c)),
                         .creative = 0,
                         .type = EventType::kImpression,
                         .fingerprint = static_cast<std::uint32_t>(random())});
    }
  }
  return entries;
}

std::shared_ptr<const RuleSet> make_rules(const Population& population) {
  RuleSetSpec spec;
  spec.version = 1;
  for (std::size_t c = 0; c < population.campaigns; ++c) {
    const std::string advertiser = "advertiser-" + std::to_string(c % 3);
    spec.campaigns.push_back({.id = campaign_id(c), .advertiser_id = advertiser});
    spec.rules.push_back({.id = "cap-" + campaign_id(c),
                          .scope = Scope::kCampaign,
                          .target = campaign_id(c),
                          .limit = 3,
                          .window = {.length = std::chrono::hours(24)}});
  }
  for (int a = 0; a < 3; ++a) {
    const std::string advertiser = "advertiser-" + std::to_string(a);
    spec.rules.push_back({.id = "cap-" + advertiser,
                          .scope = Scope::kAdvertiser,
                          .target = advertiser,
                          .limit = 100,
                          .window = {.length = std::chrono::days(7)}});
  }
  auto built = RuleSet::build(std::move(spec), {});
  if (!built.ok()) {
    std::fprintf(stderr, "%s\n", built.status().text().c_str());
    std::abort();
  }
  return built.value();
}

}  // namespace fcap::bench
