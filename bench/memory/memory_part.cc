// bench_memory: bytes of Redis' used_memory per (user, campaign), everything included: keys,
// expiry, tables. Users have 36-character ids and 10 campaigns of 3 impressions each.
//
//   fresh       every event recorded by itself and nothing done since
//   steady      thirty days of bursty sessions, the updater's compaction at work all the while
//   active      the moment when every user's session of 6 impressions is under way
//   compacted   every record compact
//
// The peers have one state: what their writers leave.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "harness/part.h"
#include "memory/steady_state.h"
#include "path/population.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kSessionImpressions = 6;

class MemoryPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    result_.table("memory", "Memory by layout, bytes per (user, campaign)",
                  fmt::format("{} users; used_memory, everything included. A peer has one state: "
                              "what its writer leaves.",
                              flags_.users),
                  {{"fresh", "fresh", 1},
                   {"steady", "steady", 1},
                   {"active", "all users active", 1},
                   {"compacted", "compacted", 1}});
    ledger_states();
    for (const auto& peer : peers_) {
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

  // Of each user, the first `compacted` impressions in one record.
  double recorded(Layout& layout, std::size_t users, std::size_t compacted = 0) {
    return bytes_per_pair(users, [&] { populate(console_, layout, {.users = users}, compacted); });
  }

  double compacted(std::size_t users) {
    return bytes_per_pair(users, [&] { populate_compacted(console_, {.users = users}); });
  }

  void ledger_states() {
    const auto layout = make_ledger_layout();
    const auto lived = flags_.quick ? std::chrono::hours(6) : std::chrono::hours(kLifeLength);
    const std::size_t all = Population{}.campaigns * Population{}.impressions;
    SteadyState state;
    const double fresh = recorded(*layout, flags_.users);
    const double steady = bytes_per_pair(
        flags_.users, [&] { state = SteadyLife(console_, flags_.users).run(lived); });
    const Numbers states = {{"fresh", fresh},
                            {"steady", steady},
                            {"active", recorded(*layout, flags_.users, all - kSessionImpressions)},
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
    for (const std::size_t divisor : {100U, 30U, 10U, 3U, 1U}) {
      const std::size_t users = flags_.users / divisor;
      result_.row("memory_users", std::to_string(users), std::to_string(users) + " users",
                  {{"ledger", compacted(users)}, {"zset", recorded(*peers_.front(), users)}});
    }
  }

  const std::vector<std::unique_ptr<Layout>> peers_ = make_peers();
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  return fcap::bench::run_part<fcap::bench::MemoryPart>(
      argc, argv, "Bytes of Redis per user and campaign, by layout.");
}
