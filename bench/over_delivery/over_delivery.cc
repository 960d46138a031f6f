// How many impressions go beyond a cap because impressions are counted only once their beacons have
// arrived; simulated, the same for the same seed.
//
//   people    sessions of 1 to 20 pages, at 2, 4 and 8 pages per minute, 1 slot per page, or 2 at
//             once, 5 ms or 50 ms apart; 3 sessions a day; each is wanted by 1 to 5 campaigns, of
//             which the first that is allowed is shown
//   cap       3 impressions per 24 h and campaign
//   beacons   log-normal: median 1 s, 99th percentile 30 s, cut at a minute; none is lost
//   no tail   in rows of their own, the 99th percentile of beacons is 2 s
//   path      20 ms from the beacon to the ledger; a read or a note reaches Redis after 0.1 ms and
//             an exponential time of mean 0.4 ms
//   lost      in a row of its own, 2 % of the beacons never arrive
//   demo      in rows of their own, people as `./dev demo --servers 4` plays them: one session
//             each, pages and beacons 30 times as fast, all else as it is
//
// Over-delivered is an impression shown when the cap's number had been shown within 24 h. The ways:
//   nothing              a check sees the ledger
//   one_server           and what this process has shown within 60 s (note_shown), one server
//   four_servers         the same, each request to any of four servers
//   four_servers_sticky  the same, a session stays on its server
//   shared               and other servers' notes too, once they are in Redis, for 5 min; any
//                        server
//   page                 the same, all slots of a page in one call (a shared page)
//   reserve              every impression is reserved before it is shown, for 15 min; any server
// Needs no server.
#include <random>

#include "harness/part.h"

namespace fcap::bench {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kMs = 1000;  // times are in microseconds
constexpr std::int64_t kDayUs = 86'400'000 * kMs;
constexpr std::int64_t kNotedUs = 60'000 * kMs;
constexpr std::int64_t kSharedUs = 300'000 * kMs;
constexpr std::int64_t kReservedUs = 900'000 * kMs;
constexpr std::int64_t kPathUs = 20 * kMs;
constexpr std::int64_t kNever = INT64_MAX;
constexpr std::size_t kCampaigns = 5;
constexpr std::ptrdiff_t kCap = 3;
constexpr std::uint32_t kServers = 4;
constexpr int kSessions = 3;
constexpr int kPagesMax = 20;
constexpr int kDemoFaster = 30;

enum class CappingWay : std::uint8_t {
  kNothing,
  kOneServer,
  kFourServers,
  kFourServersSticky,
  kShared,
  kPage,
  kReserve,
};
const std::vector<PartResult::Column> ways = {{"nothing", "nothing %", 2},
                                              {"one_server", "one server %", 2},
                                              {"four_servers", "four servers %", 2},
                                              {"four_servers_sticky", "four servers, sticky %", 2},
                                              {"shared", "shared notes, four servers %", 3},
                                              {"page", "page in one call, four servers %", 3},
                                              {"reserve", "reserve, four servers %", 3}};

// A slot to be filled: everything that chance decides, so that it is the same in every way.
struct SlotToFill {
  std::int64_t at_us;
  std::int64_t page_us;          // when its page was asked for, which names the page
  std::int64_t read_us;          // when its read reaches Redis
  std::int64_t noted_us;         // when a shared note of what it shows is in Redis
  std::int64_t counted_us;       // when the ledger has it; kNever: the beacon is lost
  std::uint32_t server;          // if any will do
  std::uint32_t session_server;  // if the session stays
};

struct SimulatedUser {
  std::vector<SlotToFill> requests;  // by time
  std::size_t campaigns;             // of those there are, the first so many want this user
};

// How far the times of beacons spread, in standard deviations of the logarithm: 99 % are below 30
// s, and below 2 s.
constexpr double kLongTail = 1.462;
constexpr double kNoTail = 0.298;

struct Pace {
  int pages_per_minute;
  int slots;
  int between_slots_ms;
  int lost_percent = 0;
  int faster = 1;  // than people are
  int sessions = kSessions;
  double spread = kLongTail;
};

struct PaceRow {
  const char* name;
  const char* title;
  Pace pace;
};
constexpr PaceRow kRows[] = {
    {"2_pages_1_slots_0_ms_0_lost", "2 pages per minute, 1 slot", {2, 1, 0}},
    {"4_pages_1_slots_0_ms_0_lost", "4 pages per minute, 1 slot", {4, 1, 0}},
    {"8_pages_1_slots_0_ms_0_lost", "8 pages per minute, 1 slot", {8, 1, 0}},
    {"2_pages_2_slots_50_ms_0_lost", "2 pages per minute, 2 slots, 50 ms apart", {2, 2, 50}},
    {"4_pages_2_slots_50_ms_0_lost", "4 pages per minute, 2 slots, 50 ms apart", {4, 2, 50}},
    {"8_pages_2_slots_50_ms_0_lost", "8 pages per minute, 2 slots, 50 ms apart", {8, 2, 50}},
    {"4_pages_2_slots_5_ms_0_lost", "4 pages per minute, 2 slots, 5 ms apart", {4, 2, 5}},
    {"4_pages_2_slots_0_ms_0_lost", "4 pages per minute, 2 slots at once", {4, 2, 0}},
    {"4_pages_1_slots_0_ms_2_lost",
     "4 pages per minute, 1 slot, 2 % of the beacons lost",
     {4, 1, 0, 2}},
    {"4_pages_2_slots_5_ms_2_lost",
     "4 pages per minute, 2 slots, 5 ms apart, 2 % of the beacons lost",
     {4, 2, 5, 2}},
    {"4_pages_1_slots_0_ms_0_lost_no_tail",
     "4 pages per minute, 1 slot, beacons without a long tail",
     {.pages_per_minute = 4, .slots = 1, .between_slots_ms = 0, .spread = kNoTail}},
    {"4_pages_2_slots_5_ms_0_lost_no_tail",
     "4 pages per minute, 2 slots, 5 ms apart, beacons without a long tail",
     {.pages_per_minute = 4, .slots = 2, .between_slots_ms = 5, .spread = kNoTail}},
    {"demo_4_pages_2_slots_5_ms_0_lost",
     "as the demo, 2 slots, 5 ms apart",
     {4, 2, 5, 0, kDemoFaster, 1}},
    {"demo_4_pages_2_slots_0_ms_0_lost",
     "as the demo, 2 slots at once",
     {4, 2, 0, 0, kDemoFaster, 1}}};

struct ShownImpression {
  const SlotToFill& request;
  std::uint32_t campaign;
  std::uint32_t server;
};

SimulatedUser make_user(std::uint64_t seed, const Pace& pace) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> campaigns(1, kCampaigns);
  std::uniform_int_distribution<std::int64_t> start_us(0, kDayUs);
  std::uniform_int_distribution<int> percent(0, 99);
  std::exponential_distribution<double> beyond_us(1.0 / 400);
  std::uniform_int_distribution<int> pages(1, kPagesMax);
  std::uniform_int_distribution<std::uint32_t> server(0, kServers - 1);
  std::exponential_distribution<double> between_pages(pace.faster * pace.pages_per_minute /
                                                      60'000'000.0);
  std::lognormal_distribution<double> beacon_seconds(0, pace.spread);
  SimulatedUser user{.requests = {}, .campaigns = campaigns(random)};
  for (int session = 0; session < pace.sessions; ++session) {
    std::int64_t page_us = start_us(random);
    const std::uint32_t stays_on = server(random);
    for (int page = pages(random); page > 0; --page) {
      for (int slot = 0; slot < pace.slots; ++slot) {
        const double beacon_us = std::min(1e6 * beacon_seconds(random), 60e6) / pace.faster;
        const bool is_lost = percent(random) < pace.lost_percent;
        const std::int64_t at_us = page_us + slot * pace.between_slots_ms * kMs;
        const std::int64_t read_us = at_us + 100 + static_cast<std::int64_t>(beyond_us(random));
        const std::int64_t noted_us = read_us + 100 + static_cast<std::int64_t>(beyond_us(random));
        const std::int64_t counted_us = at_us + static_cast<std::int64_t>(beacon_us) + kPathUs;
        user.requests.push_back({.at_us = at_us,
                                 .page_us = page_us,
                                 .read_us = read_us,
                                 .noted_us = noted_us,
                                 .counted_us = is_lost ? kNever : counted_us,
                                 .server = server(random),
                                 .session_server = stays_on});
      }
      page_us += static_cast<std::int64_t>(between_pages(random));
    }
  }
  std::ranges::sort(user.requests, {}, &SlotToFill::at_us);
  return user;
}

std::uint32_t server_of(const SlotToFill& request, CappingWay way) noexcept {
  if (way == CappingWay::kFourServersSticky) return request.session_server;
  return way == CappingWay::kNothing || way == CappingWay::kOneServer ? 0 : request.server;
}

// Whether a check sees an impression.
bool sees(const SlotToFill& request, std::uint32_t server, CappingWay way,
          const ShownImpression& shown) noexcept {
  const SlotToFill& earlier = shown.request;
  const std::int64_t age_us = request.at_us - earlier.at_us;
  if (earlier.counted_us <= request.at_us) return true;
  if (way == CappingWay::kNothing) return false;
  if (way == CappingWay::kReserve) return age_us < kReservedUs;
  if (shown.server == server && age_us < kNotedUs) return true;
  if (way == CappingWay::kPage && earlier.page_us == request.page_us) return true;
  return way >= CappingWay::kShared && age_us < kSharedUs && earlier.noted_us <= request.read_us;
}

// Counts impressions: how many were shown, and how many of these were beyond the cap.
struct Tally {
  double shown = 0;
  double beyond = 0;
};

void simulate(const SimulatedUser& user, CappingWay way, Tally& tally) {
  std::vector<ShownImpression> all;
  for (const SlotToFill& request : user.requests) {
    const std::uint32_t server = server_of(request, way);
    const auto capped = [&](std::uint32_t campaign, auto counts) {
      return kCap <= std::ranges::count_if(all, [&](const ShownImpression& shown) {
               return shown.campaign == campaign && request.at_us - shown.request.at_us < kDayUs &&
                      counts(shown);
             });
    };
    const auto seen = [&](const ShownImpression& shown) {
      return sees(request, server, way, shown);
    };
    std::uint32_t campaign = 0;
    while (campaign < user.campaigns && capped(campaign, seen)) ++campaign;
    if (campaign == user.campaigns) continue;
    ++tally.shown;
    if (capped(campaign, [](const ShownImpression&) { return true; })) ++tally.beyond;
    all.push_back({request, campaign, server});
  }
}

// The shares of impressions beyond the cap, in percent, by way.
Numbers percents(std::size_t users, const Pace& pace) {
  std::vector<Tally> tallies(ways.size());
  for (std::size_t i = 0; i < users; ++i) {
    const SimulatedUser user = make_user(kSeed * 1'000'003 + i, pace);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      simulate(user, static_cast<CappingWay>(way), tallies[way]);
    }
  }
  Numbers percents;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    percents[ways[way].key] = 100 * tallies[way].beyond / std::max(1.0, tallies[way].shown);
  }
  return percents;
}

void report(const PartFlags& flags, PartResult& result) {
  result.table("over_delivery", "Impressions beyond the cap, percent",
               fmt::format("Cap {} per 24 h; {} people, seed {}; beacons of median 1 s, p99 30 s, "
                           "a minute at worst. Nothing: checks see the ledger alone; else with "
                           "note_shown, shared notes or reservations.",
                           kCap, flags.users, kSeed),
               ways);
  std::map<std::string, Numbers> found;
  for (const auto& [name, title, pace] : kRows) {
    found[name] = percents(flags.users, pace);
    result.row(name, title, found[name]);
  }
  for (const auto& [way, percent] : found.at("4_pages_1_slots_0_ms_0_lost")) {
    result.number("over_delivery_" + way, percent / 100);
  }
  result.number("over_cap_percent_shared_5ms_four_servers",
                found.at("4_pages_2_slots_5_ms_0_lost").at("shared"));
  const Numbers& at_once = found.at("4_pages_2_slots_0_ms_0_lost");
  result.number("over_cap_percent_page_in_one_call_four_servers", at_once.at("page"));
  result.number("over_cap_percent_reserve_four_servers", at_once.at("reserve"));
}

const Registered kOverDelivery("over_delivery", report);

}  // namespace
}  // namespace fcap::bench
