#include "base/backoff.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::base {
namespace backoff_test {

using namespace std::chrono_literals;

TEST(Backoff, DoublesToTheLongestWaitAndBeginsAgain) {
  Backoff least(20ms, 100ms, [] { return 0.0; });
  EXPECT_EQ(least.next(), 10ms);
  EXPECT_EQ(least.next(), 20ms);
  EXPECT_EQ(least.next(), 40ms);
  EXPECT_EQ(least.next(), 50ms);
  EXPECT_EQ(least.next(), 50ms);
  least.reset();
  EXPECT_EQ(least.next(), 10ms);
}

// Who is refused at the same moment does not come back at the same moment: of a thousand clients, a
// tenth of the time in which they come sees about a tenth of them.
TEST(Backoff, AThousandThatFailTogetherAreSpreadOverTheUpperHalfOfTheStep) {
  constexpr int kClients = 1'000;
  constexpr std::size_t kParts = 10;
  std::vector<Backoff> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(20ms, 2'000ms, seeded_jitter(static_cast<std::uint64_t>(i)));
  }
  Backoff::Duration step = 20ms;
  for (int failure = 1; failure <= 10; ++failure) {
    std::vector<int> counts(kParts);
    for (Backoff& client : clients) {
      const auto into = client.next() - step / 2;
      ASSERT_GE(into, 0ms);
      ASSERT_LE(into, step / 2);
      const auto part = static_cast<std::size_t>(into * kParts / (step / 2));
      ++counts[std::min(part, kParts - 1)];
    }
    for (const int count : counts) {
      EXPECT_GT(count, kClients / 20) << failure;
      EXPECT_LT(count, kClients / 5) << failure;
    }
    step = std::min<Backoff::Duration>(step * 2, 2'000ms);
  }
}

}  // namespace backoff_test
}  // namespace fcap::base
