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

#include "harness/part.h"
#include "memory/steady_state.h"
#include "path/population.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kSessionImpressions = 6;

std::vector<Impression> by_time(const Population& population,
                                const std::vector<std::string>& campaigns, std::size_t user) {
  std::vector<Impression> impressions = impressions_of(population, campaigns, user);
  std::ranges::sort(impressions, {}, &Impression::time);
  return impressions;
}

// Every event in commands of its own, as a writer sees them; but of each user the first
// `compacted` in one record.
void record_one_by_one(RedisConsole& console, Layout& layout, std::size_t users,
                       std::size_t compacted = 0) {
  const Population population{.users = users};
  const auto campaigns = campaign_ids(population.campaigns);
  send_users(console, users, [&](std::string& wire, std::size_t user) {
    auto impressions = by_time(population, campaigns, user);
    const auto rest = impressions.begin() + static_cast<std::ptrdiff_t>(compacted);
    std::uint32_t commands = append_record(wire, population.key_prefix, user,
                                           compacted_record({impressions.begin(), rest}));
    for (auto event = rest; event != impressions.end(); ++event) {
      commands += layout.record(wire, user_id(user), {&*event, 1});
    }
    return commands;
  });
}

class MemoryPart {
 public:
  MemoryPart(const PartFlags& flags, PartResult& result) : flags_(flags), result_(result) {}

  void run() {
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
      result_.row("memory", peer->traits().name, peer->traits().title, {{"fresh", bytes}});
      result_.number("bytes_per_pair_" + peer->traits().name, bytes);
    }
    if (!flags_.quick) by_users();
  }

 private:
  template <typename Write>
  double bytes_per_pair(std::size_t users, Write write) {
    console_.call({"FLUSHALL"});
    const double empty = console_.settled_memory_bytes();
    write();
    return (console_.settled_memory_bytes() - empty) /
           static_cast<double>(users * Population{}.campaigns);
  }

  double recorded(Layout& layout, std::size_t users) {
    console_.load(layout.traits().scripts);
    return bytes_per_pair(users, [&] { record_one_by_one(console_, layout, users); });
  }

  double compacted(std::size_t users) {
    return bytes_per_pair(users, [&] { populate_compacted(console_, {.users = users}); });
  }

  void ledger_states() {
    const auto layout = make_ledger_layout();
    SteadyState state;
    const auto lived = flags_.quick ? std::chrono::hours(6) : std::chrono::hours(kLifeLength);
    const std::size_t all = Population{}.campaigns * Population{}.impressions;
    const Numbers states = {
        {"fresh", recorded(*layout, flags_.users)},
        {"steady",
         bytes_per_pair(flags_.users,
                        [&] { state = live_to_steady_state(console_, flags_.users, lived); })},
        {"active", bytes_per_pair(flags_.users,
                                  [&] {
                                    record_one_by_one(console_, *layout, flags_.users,
                                                      all - kSessionImpressions);
                                  })},
        {"compacted", compacted(flags_.users)}};
    result_.row("memory", "ledger", layout->traits().title, states);
    for (const auto& [name, bytes] : states) {
      result_.number("bytes_per_pair_" + (name == "active" ? "all_active" : name), bytes);
    }
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
  PartResult& result_;
  PartRedis redis_;
  RedisConsole console_{redis_};
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  CLI::App app("Bytes of Redis per user and campaign, by layout.", "bench_memory");
  return run_part(app, argc, argv, flags, [&](fcap::bench::PartResult& result) {
    fcap::bench::MemoryPart(flags, result).run();
  });
}
