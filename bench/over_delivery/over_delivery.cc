// How many impressions go beyond a cap because impressions are counted only once their beacons have
// arrived; simulated, the same for the same seed.
//
//   people    sessions of 1 to 20 pages, at 2, 4 and 8 pages per minute, 1 or 2 slots per page; 3
//             sessions a day; each is wanted by 1 to 5 campaigns, of which the first that is
//             allowed is shown
//   cap       3 impressions per 24 h and campaign
//   beacons   log-normal: median 1 s, 99th percentile 30 s, cut at a minute; none is lost
//   path      20 ms from the beacon to the ledger
//
// Over-delivered is an impression shown when the cap's number had been shown within 24 h. Four
// ways:
//   nothing              a check sees the ledger
//   one_server           and what this process has shown within 60 s (note_shown), one server
//   four_servers         the same, each request to any of four servers
//   four_servers_sticky  the same, a session stays on its server
// Needs no server.
#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/part.h"

namespace fcap::bench {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kStartMs = 1'774'746'000'000;
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kNotedMs = 60'000;
constexpr std::int64_t kPathMs = 20;
constexpr std::size_t kCampaigns = 5;
constexpr std::ptrdiff_t kCap = 3;
constexpr std::uint32_t kServers = 4;
constexpr int kSessions = 3;
constexpr int kPagesMax = 20;
constexpr std::int64_t kBetweenSlotsMs = 50;

enum class Way : std::uint8_t { kNothing, kOneServer, kFourServers, kFourServersSticky };
const std::vector<PartResult::Column> ways = {{"nothing", "nothing %", 2},
                                              {"one_server", "one server %", 2},
                                              {"four_servers", "four servers %", 2},
                                              {"four_servers_sticky", "four servers, sticky %", 2}};

// A slot to be filled: everything that chance decides, so that it is the same in every way.
struct Request {
  std::int64_t at_ms;
  std::int64_t beacon_ms;        // how long it takes
  std::uint32_t server;          // if any will do
  std::uint32_t session_server;  // if the session stays
};

struct User {
  std::vector<Request> requests;  // by time
  std::size_t campaigns;          // of those there are, the first so many want this user
};

struct Pace {
  int pages_per_minute;
  int slots;
};
constexpr std::array<Pace, 6> kPaces = {{{2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 2}, {8, 2}}};
constexpr std::size_t kUsualPace = 1;

struct Shown {
  std::int64_t at_ms;
  std::int64_t counted_ms;  // when the ledger has it
  std::uint32_t campaign;
  std::uint32_t server;
};

struct Tally {
  std::uint64_t shown = 0;
  std::uint64_t beyond = 0;
  [[nodiscard]] double share() const {
    return shown == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(shown);
  }
};

User make_user(std::uint64_t seed, const Pace& pace) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> campaigns(1, kCampaigns);
  std::uniform_int_distribution<std::int64_t> start_ms(0, kDayMs);
  std::uniform_int_distribution<int> pages(1, kPagesMax);
  std::uniform_int_distribution<std::uint32_t> server(0, kServers - 1);
  std::exponential_distribution<double> between_pages(pace.pages_per_minute / 60'000.0);
  std::lognormal_distribution<double> beacon_seconds(0, 1.462);  // 99 % are below 30 s
  User user{.requests = {}, .campaigns = campaigns(random)};
  for (int session = 0; session < kSessions; ++session) {
    std::int64_t at_ms = kStartMs + start_ms(random);
    const std::uint32_t stays_on = server(random);
    for (int page = pages(random); page > 0; --page) {
      for (int slot = 0; slot < pace.slots; ++slot) {
        const double beacon_ms = std::min(1000 * beacon_seconds(random), 60'000.0);
        user.requests.push_back({at_ms + slot * kBetweenSlotsMs,
                                 static_cast<std::int64_t>(beacon_ms), server(random), stays_on});
      }
      at_ms += static_cast<std::int64_t>(between_pages(random));
    }
  }
  std::ranges::sort(user.requests, {}, &Request::at_ms);
  return user;
}

std::uint32_t server_of(const Request& request, Way way) noexcept {
  if (way == Way::kFourServers) return request.server;
  return way == Way::kFourServersSticky ? request.session_server : 0;
}

void simulate(const User& user, Way way, Tally& tally) {
  std::vector<Shown> all;
  for (const Request& request : user.requests) {
    const std::uint32_t server = server_of(request, way);
    // What a check on this server sees: what has arrived and, with note_shown, what the server
    // itself has shown lately.
    const auto seen = [&](const Shown& shown) {
      const bool noted =
          way != Way::kNothing && shown.server == server && request.at_ms - shown.at_ms < kNotedMs;
      return noted || shown.counted_ms <= request.at_ms;
    };
    const auto capped = [&](std::uint32_t campaign, auto counts) {
      return kCap <= std::ranges::count_if(all, [&](const Shown& shown) {
               return shown.campaign == campaign && request.at_ms - shown.at_ms < kDayMs &&
                      counts(shown);
             });
    };
    std::uint32_t campaign = 0;
    while (campaign < user.campaigns && capped(campaign, seen)) ++campaign;
    if (campaign == user.campaigns) continue;
    ++tally.shown;
    if (capped(campaign, [](const Shown&) { return true; })) ++tally.beyond;
    all.push_back({.at_ms = request.at_ms,
                   .counted_ms = request.at_ms + request.beacon_ms + kPathMs,
                   .campaign = campaign,
                   .server = server});
  }
}

std::array<Tally, 4> simulate(std::size_t users, const Pace& pace) {
  std::array<Tally, 4> tallies;
  for (std::size_t i = 0; i < users; ++i) {
    const User user = make_user(kSeed * 1'000'003 + i, pace);
    for (std::size_t way = 0; way < tallies.size(); ++way) {
      simulate(user, static_cast<Way>(way), tallies[way]);
    }
  }
  return tallies;
}

// The shares, in percent, of each pace.
void report(std::size_t users, PartResult& result) {
  result.table("over_delivery", "Impressions beyond the cap, percent",
               fmt::format("Cap {} per 24 h; {} people, seed {}; beacons of median 1 s, p99 30 s, "
                           "a minute at worst. Nothing: checks see the ledger alone; else with "
                           "note_shown.",
                           kCap, users, kSeed),
               ways);
  for (const Pace& pace : kPaces) {
    const auto tallies = simulate(users, pace);
    Numbers percents;
    for (std::size_t way = 0; way < tallies.size(); ++way) {
      percents[ways[way].key] = 100 * tallies[way].share();
      if (&pace == &kPaces[kUsualPace]) {
        result.number("over_delivery_" + ways[way].key, tallies[way].share());
      }
    }
    const auto& [pages, slots] = pace;
    result.row("over_delivery", fmt::format("{}_pages_{}_slots", pages, slots),
               fmt::format("{} pages per minute, {} slot{}", pages, slots, slots == 1 ? "" : "s"),
               percents);
  }
}

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  using namespace fcap::bench;
  PartFlags flags;
  return run_part(argc, argv, "Simulates impressions beyond a cap.", flags,
                  [&](PartResult& result) { report(flags.users, result); });
}
