// bench_memory: bytes of Redis' used_memory per (user, campaign), everything included: keys,
// expiry, tables. Users have 36-character ids and 10 campaigns of 3 impressions each.
//
//   fresh       every event recorded by itself and nothing done since
//   steady      thirty days of bursty sessions, the updater's compaction at work all the while
//   active      the moment when every user's session of 6 impressions is under way
//   compacted   every record compact
//
// The peers have one state: what their writers leave.
#include <algorithm>
#include <memory>
#include <vector>

#include "harness/part_flags.h"
#include "harness/part_result.h"
#include "ledger/user_key.h"
#include "memory/session_life.h"
#include "memory/steady_state.h"
#include "path/population.h"
#include "peers/command_words.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kSessionImpressions = 6;

std::vector<Impression> by_time(const Population& population,
                                const std::vector<std::string>& campaigns, std::size_t user) {
  std::vector<Impression> impressions = impressions_of(population, campaigns, user);
  std::sort(impressions.begin(), impressions.end(),
            [](const Impression& a, const Impression& b) { return a.time < b.time; });
  return impressions;
}

/// Every event in commands of its own, as a writer sees them. `skipped` of each user are left out.
void record_one_by_one(RedisConsole& console, Layout& layout, const Population& population,
                       std::size_t skipped = 0) {
  constexpr std::size_t kUsersATime = 50;
  const auto campaigns = campaign_ids(population.campaigns);
  for (std::size_t first = 0; first < population.users; first += kUsersATime) {
    std::string wire;
    std::uint32_t commands = 0;
    for (std::size_t user = first; user < std::min(first + kUsersATime, population.users); ++user) {
      const auto impressions = by_time(population, campaigns, user);
      for (std::size_t i = skipped; i < impressions.size(); ++i) {
        commands += layout.record(wire, user_id(user), {&impressions[i], 1});
      }
    }
    console.run(std::move(wire), commands);
  }
}

/// All but the last session compacted, the last session appended.
void write_active(RedisConsole& console, Layout& layout, const Population& population) {
  const auto campaigns = campaign_ids(population.campaigns);
  std::string key;
  for (std::size_t user = 0; user < population.users; ++user) {
    auto impressions = by_time(population, campaigns, user);
    impressions.resize(impressions.size() - kSessionImpressions);
    ledger::user_key(population.key_prefix, user_id(user), key);
    console.call({"SET", key, compacted_record(impressions), "EX", kRetentionS});
  }
  record_one_by_one(console, layout, population,
                    population.campaigns * population.impressions - kSessionImpressions);
}

class MemoryPart {
 public:
  explicit MemoryPart(const PartFlags& flags) : flags_(flags), console_(flags.redis) {}

  int run() {
    result_.table("memory", "Memory by layout, bytes per (user, campaign)",
                  std::to_string(flags_.users) +
                      " users; used_memory, everything included. A peer has one state: what its "
                      "writer leaves.",
                  {{"fresh", "fresh", 1},
                   {"steady", "steady", 1},
                   {"active", "all users active", 1},
                   {"compacted", "compacted", 1}});
    ledger_states();
    for (const auto& peer : make_peers()) {
      const double bytes = recorded(*peer, flags_.users);
      const std::string name(peer->name());
      result_.row("memory", name, std::string(peer->title()), {{"fresh", bytes}});
      result_.number("bytes_per_pair_" + name, bytes);
    }
    if (!flags_.quick) by_users();
    result_.write(flags_.json);
    return 0;
  }

 private:
  template <typename Write>
  double bytes_per_pair(std::size_t users, Write write) {
    console_.call({"FLUSHALL"});
    const std::uint64_t empty = console_.settled_memory_bytes();
    write();
    const std::uint64_t full = console_.settled_memory_bytes();
    return static_cast<double>(full - empty) / static_cast<double>(users * Population{}.campaigns);
  }

  double recorded(Layout& layout, std::size_t users) {
    for (const std::string_view script : layout.scripts()) {
      console_.call({"SCRIPT", "LOAD", script});
    }
    return bytes_per_pair(users, [&] { record_one_by_one(console_, layout, {.users = users}); });
  }

  double compacted(std::size_t users) {
    return bytes_per_pair(users, [&] { populate_compacted(console_, {.users = users}); });
  }

  void ledger_states() {
    const auto layout = make_ledger_layout();
    const double fresh = recorded(*layout, flags_.users);
    SteadyState state;
    const auto lived = flags_.quick ? std::chrono::hours(6) : std::chrono::hours(kLifeLength);
    const double steady = bytes_per_pair(
        flags_.users, [&] { state = live_to_steady_state(console_, flags_.users, lived); });
    const double active = bytes_per_pair(
        flags_.users, [&] { write_active(console_, *layout, {.users = flags_.users}); });
    const double compact = compacted(flags_.users);
    result_.row("memory", "ledger", std::string(layout->title()),
                {{"fresh", fresh}, {"steady", steady}, {"active", active}, {"compacted", compact}});
    result_.number("bytes_per_pair_fresh", fresh);
    result_.number("bytes_per_pair_steady", steady);
    result_.number("bytes_per_pair_all_active", active);
    result_.number("bytes_per_pair_compacted", compact);
    result_.number("steady_open_tails_share",
                   static_cast<double>(state.open_tails) / static_cast<double>(flags_.users));
    result_.number("steady_compactions_per_event",
                   static_cast<double>(state.compactions) / static_cast<double>(state.events));
  }

  // A server's table of keys doubles as it grows, so a population's share of it is between one and
  // two slots per key: the numbers are flat but for that.
  void by_users() {
    result_.table("memory_users", "Memory by number of users, bytes per (user, campaign)",
                  "Compacted records, and sorted sets as written.",
                  {{"ledger", "ledger, compacted", 1}, {"zset", "ZSET per user+campaign", 1}});
    const auto sets = make_zset_layout();
    for (const std::size_t divisor : {100U, 30U, 10U, 3U, 1U}) {
      const std::size_t users = flags_.users / divisor;
      result_.row("memory_users", std::to_string(users), std::to_string(users) + " users",
                  {{"ledger", compacted(users)}, {"zset", recorded(*sets, users)}});
    }
  }

  const PartFlags& flags_;
  PartResult result_{"memory"};
  RedisConsole console_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  CLI::App app("Bytes of Redis per user and campaign, by layout.", "bench_memory");
  return fcap::bench::run_part(app, argc, argv, flags,
                               [&] { return fcap::bench::MemoryPart(flags).run(); });
}
