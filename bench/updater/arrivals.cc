#include "updater/arrivals.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "base/clock.h"

namespace fcap::bench {
namespace {

// Of the traffic that is modelled, not how fast it is produced.
constexpr double kEventsPerSecond = 20'000;
constexpr std::uint64_t kCampaigns = 1'000;
constexpr int kPagesMax = 8;
constexpr int kImpressionsMax = 4;  // of a page
constexpr double kPagesMean = (1 + kPagesMax) / 2.0;
constexpr double kImpressionsMean = (1 + kImpressionsMax) / 2.0;
constexpr double kBeaconDeviation = 1.462;  // of the logarithm of seconds: 99 % are below 30 s
constexpr double kBeaconMaxMs = 60'000;
constexpr std::int64_t kPageMinMs = 5'000;
constexpr std::int64_t kPageMaxMs = 30'000;
constexpr double kSessionMaxMs = (kPagesMax + 2) * kPageMaxMs;

}  // namespace

std::vector<Arrival> make_arrivals(std::size_t count, std::size_t users) {
  std::mt19937_64 random;
  std::uniform_int_distribution<std::uint64_t> user(0, users - 1);
  std::uniform_int_distribution<std::uint64_t> campaign(0, kCampaigns - 1);
  std::uniform_int_distribution<int> pages(1, kPagesMax);
  std::uniform_int_distribution<int> impressions(1, kImpressionsMax);
  std::uniform_int_distribution<std::int64_t> next_page_ms(kPageMinMs, kPageMaxMs);
  std::lognormal_distribution<double> beacon_seconds(0, kBeaconDeviation);
  std::exponential_distribution<double> next_session_ms(kEventsPerSecond / 1000 / kPagesMean /
                                                        kImpressionsMean);
  const std::int64_t start_ms = to_ms(base::wall_now() - std::chrono::hours(1));
  std::vector<Arrival> arrivals;
  double session_ms = static_cast<double>(start_ms) - kSessionMaxMs;
  // What arrives later than the newest session begins may lack some of its neighbours.
  for (std::size_t arrived = 0; arrived < count; session_ms += next_session_ms(random)) {
    const std::uint64_t who = user(random);
    auto page_ms = static_cast<std::int64_t>(session_ms);
    for (int page = pages(random); page > 0; --page) {
      for (int left = impressions(random); left > 0; --left) {
        const double beacon_ms = std::min(1000 * beacon_seconds(random), kBeaconMaxMs);
        const std::int64_t arrived_ms = page_ms + static_cast<std::int64_t>(beacon_ms);
        if (arrived_ms >= start_ms) {
          arrivals.push_back({arrived_ms, page_ms, who, campaign(random)});
        }
      }
      page_ms += next_page_ms(random);
    }
    arrived = static_cast<std::size_t>(std::max(0.0, session_ms - static_cast<double>(start_ms)) /
                                       1000 * kEventsPerSecond);
  }
  std::ranges::sort(arrivals, {}, &Arrival::arrived_ms);
  arrivals.resize(count);
  return arrivals;
}

std::string message_of(const Arrival& arrival, std::string_view user_id, std::uint64_t number) {
  return fmt::format(
      R"({{"user_id":"{}","campaign_id":"campaign-{}","timestamp":{},"imp_id":"{}"}})", user_id,
      arrival.campaign, arrival.shown_ms, uuid(kImpressionIds, number));
}

}  // namespace fcap::bench
