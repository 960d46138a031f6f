#include "path/population.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "redis/client.h"

namespace fcap::bench {
namespace {

// One user's impressions by time, the same in every layout. Views into `campaigns`.
std::vector<PeerImpression> impressions_of(const Population& population,
                                           const std::vector<std::string>& campaigns,
                                           std::size_t user) {
  constexpr std::int64_t kMonthMs = std::int64_t{30} * 86'400'000;
  std::mt19937_64 random(user);
  std::vector<PeerImpression> impressions;
  for (std::size_t i = 0; i < population.campaigns * population.impressions; ++i) {
    const auto age_ms = static_cast<std::int64_t>(random() % kMonthMs);
    impressions.push_back({.time = population.now - std::chrono::milliseconds(age_ms),
                           .campaign = campaigns[i / population.impressions],
                           .fingerprint = static_cast<std::uint32_t>(random())});
  }
  std::ranges::sort(impressions, {}, &PeerImpression::time);
  return impressions;
}

std::string record_of(std::span<const PeerImpression> impressions) {
  ledger::Ledger ledger;
  for (const PeerImpression& impression : impressions) ledger.merge(entry_of(impression));
  return compacted_record(ledger);
}

}  // namespace

std::string user_id(std::size_t i) {
  return fmt::format("00000000-0000-4000-8000-{:012}", i);
}

std::string campaign_id(std::size_t i) {
  return "campaign-" + std::to_string(i);
}

std::string advertiser_id(std::size_t i) {
  return "advertiser-" + std::to_string(i);
}

std::vector<std::string> campaign_ids(std::size_t campaigns) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < campaigns; ++i) ids.push_back(campaign_id(i));
  return ids;
}

std::string compacted_record(const ledger::Ledger& ledger) {
  // The largest ledgers of the series are above the usual bound, to see how the cost goes on.
  constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20U;
  return ledger::compact(
             ledger, {},
             {.retention = kRetention, .trim_now = {}, .record_bytes_max = kRecordBytesMax})
      .record;
}

std::string usual_record(std::size_t user) {
  const auto campaigns = campaign_ids(Population{}.campaigns);
  return record_of(impressions_of({}, campaigns, user));
}

std::string key_of(std::string_view user_id, std::string_view prefix) {
  std::string key;
  ledger::user_key(prefix, user_id, key);
  return key;
}

void append_record(redis::Request& request, const std::string& key, const std::string& record) {
  if (!record.empty()) append(request, {"SET", key, record, "EX", kRetentionS});
}

void send_each(RedisConsole& console, std::size_t users, const AppendOne& append) {
  constexpr std::size_t kUsersATime = 200;
  CommandBatch batch;
  for (std::size_t user = 0; user < users; ++user) {
    append(batch, user);
    if (user % kUsersATime == kUsersATime - 1) console.run(batch);
  }
  console.run(batch);
}

void populate(RedisConsole& console, Layout& layout, const Population& population,
              std::size_t compacted) {
  console.load(layout.traits().scripts);
  const auto campaigns = campaign_ids(population.campaigns);
  send_each(console, population.users, [&](CommandBatch& batch, std::size_t user) {
    const std::vector<PeerImpression> all = impressions_of(population, campaigns, user);
    const auto impressions = std::span(all);
    const std::string id = user_id(user);
    append_record(batch, key_of(id, population.key_prefix),
                  record_of(impressions.first(compacted)));
    for (const PeerImpression& impression : impressions.subspan(compacted)) {
      layout.record(batch, id, impression);
    }
  });
}

void populate_compacted(RedisConsole& console, const Population& population) {
  populate(console, *make_ledger_layout(), population,
           population.campaigns * population.impressions);
}

RuleSetSpec campaign_rules(std::size_t campaigns, std::uint32_t limit, std::size_t advertisers) {
  RuleSetSpec spec{.version = 1};
  for (std::size_t i = 0; i < campaigns; ++i) {
    spec.campaigns.push_back(
        {.id = campaign_id(i), .advertiser_id = advertiser_id(i % advertisers)});
    spec.rules.push_back({.id = "cap-" + campaign_id(i),
                          .target = campaign_id(i),
                          .limit = limit,
                          .window = {.length = std::chrono::hours(24)}});
  }
  return spec;
}

std::shared_ptr<const RuleSet> make_rules(std::size_t campaigns) {
  constexpr std::size_t kAdvertisers = 3;
  RuleSetSpec spec = campaign_rules(campaigns, 3, kAdvertisers);
  for (std::size_t i = 0; i < std::min(kAdvertisers, campaigns); ++i) {
    spec.rules.push_back({.id = "cap-" + advertiser_id(i),
                          .scope = Scope::kAdvertiser,
                          .target = advertiser_id(i),
                          .limit = 100,
                          .window = {.length = std::chrono::days(7)}});
  }
  return RuleSet::build(std::move(spec), {}).value();
}

}  // namespace fcap::bench
