#include "memory/session_life.h"

#include <algorithm>
#include <array>
#include <random>

namespace fcap::bench {
namespace {

constexpr std::size_t kSessions = 5;
constexpr std::size_t kImpressionsPerSession = 6;
constexpr std::size_t kImpressions = kSessions * kImpressionsPerSession;
constexpr std::size_t kCampaigns = 10;
constexpr std::int64_t kGapMinMs = 5'000;
constexpr std::int64_t kGapSpreadMs = 50'000;

}  // namespace

std::vector<LifeEvent> session_life(std::size_t users) {
  constexpr std::int64_t kLengthMs = std::chrono::milliseconds(kLifeLength).count();
  std::vector<LifeEvent> events;
  events.reserve(users * kImpressions);
  for (std::size_t user = 0; user < users; ++user) {
    std::mt19937_64 random(user);
    std::array<std::uint8_t, kImpressions> campaigns{};
    for (std::size_t i = 0; i < kImpressions; ++i) {
      campaigns[i] = static_cast<std::uint8_t>(i % kCampaigns);
    }
    std::shuffle(campaigns.begin(), campaigns.end(), random);
    std::int64_t time_ms = 0;
    for (std::size_t i = 0; i < kImpressions; ++i) {
      if (i % kImpressionsPerSession == 0) {
        time_ms = static_cast<std::int64_t>(random() % kLengthMs);
      } else {
        time_ms += kGapMinMs + static_cast<std::int64_t>(random() % kGapSpreadMs);
      }
      events.push_back({.time_ms = time_ms % kLengthMs,
                        .user = static_cast<std::uint32_t>(user),
                        .fingerprint = static_cast<std::uint32_t>(random()),
                        .campaign = campaigns[i]});
    }
  }
  std::sort(events.begin(), events.end(), [](const LifeEvent& a, const LifeEvent& b) {
    return a.time_ms != b.time_ms ? a.time_ms < b.time_ms : a.user < b.user;
  });
  return events;
}

}  // namespace fcap::bench
