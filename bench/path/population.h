#pragma once

#include <fmt/format.h>
#include <xxhash.h>

#include <fcap/rule_set.h>
#include <fcap/time.h>

#include "harness/redis_console.h"
#include "peers/layout.h"

namespace fcap::bench {

/// When the benches take place, whatever the machine's clock says: a run can be repeated, and the
/// population's 30 days lie in one calendar month, so that layouts that count by the month hold as
/// much of it as the others. 2026-01-31T23:30:00Z.
inline constexpr Instant kBenchNow = instant_from_ms(1'769'902'200'000);

/// The users of every bench: 36-character ids, 10 campaigns with 3 impressions each within 30 days.
struct Population {
  std::size_t users = 100'000;
  std::size_t campaigns = 10;
  std::size_t impressions = 3;  ///< of each campaign
  std::string key_prefix = "fcap";
  Instant now = kBenchNow;  ///< what the 30 days lie before
};

/// A number that looks random, the same for the same one.
inline std::uint64_t mixed(std::uint64_t number) {
  return XXH3_64bits(&number, sizeof number);
}

/// An id of 36 characters, from a number of a kind: equal pairs give equal ids.
inline std::string uuid(std::uint64_t kind, std::uint64_t number) {
  const std::uint64_t high = mixed(number * 16 + kind * 2);
  const std::uint64_t low = mixed(number * 16 + kind * 2 + 1);
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", high >> 32U, (high >> 16U) & 0xFFFFU,
                     high & 0xFFFU, low >> 52U, low & 0xFFFFFFFFFFFFU);
}
inline constexpr std::uint64_t kUserIds = 1;
inline constexpr std::uint64_t kImpressionIds = 2;
inline constexpr std::uint64_t kProbeIds = 3;

/// "00000000-0000-4000-8000-000000000042".
std::string user_id(std::size_t i);
std::string campaign_id(std::size_t i);
std::string advertiser_id(std::size_t i);
/// For views into them.
std::vector<std::string> campaign_ids(std::size_t campaigns);

/// A user's record as compaction leaves it.
std::string compacted_record(const ledger::Ledger& ledger);
/// That of one of the population's users: much the same for each.
std::string usual_record(std::size_t user = 0);
/// The key of a user's record.
std::string key_of(std::string_view user_id, std::string_view prefix = "fcap");
/// Adds the command that writes a record, if there is one.
void append_record(redis::Request& request, const std::string& key, const std::string& record);

/// Sends the commands that `append` adds for each of so many users (or of what else is numbered),
/// those of many together.
using AppendOne = std::function<void(CommandBatch& batch, std::size_t user)>;
void send_each(RedisConsole& console, std::size_t users, const AppendOne& append);

/// Writes the population as compacted records.
void populate_compacted(RedisConsole& console, const Population& population);
/// Writes the population as the layout's writers leave it, which get one event after the other. Of
/// each user the first `compacted` impressions are in one record already.
void populate(RedisConsole& console, Layout& layout, const Population& population,
              std::size_t compacted = 0);

/// A rule per campaign: so many per 24 h. A campaign has one of so many advertisers.
RuleSetSpec campaign_rules(std::size_t campaigns, std::uint32_t limit, std::size_t advertisers);
/// Two rules per campaign: 3 per 24 h for the campaign, 100 per 7 days for its advertiser.
std::shared_ptr<const RuleSet> make_rules(std::size_t campaigns);

}  // namespace fcap::bench
