#include "redis/breaker.h"

#include <gtest/gtest.h>

namespace fcap::redis {
namespace breaker_test {

using std::chrono::milliseconds;

constexpr Breaker::TimePoint kStart{std::chrono::hours{1}};

Breaker make_breaker(std::size_t failures, double jitter = 0.0) {
  return Breaker({failures, 0, milliseconds{100}, milliseconds{400}}, [jitter] { return jitter; });
}

// Opens a breaker that opens at once, and gives how long it waits before it probes.
milliseconds wait_of(Breaker& breaker, Breaker::TimePoint now) {
  return std::chrono::duration_cast<milliseconds>(breaker.probe_at() - now);
}

TEST(Breaker, OpensAfterThatManyFailuresInARow) {
  Breaker breaker = make_breaker(3);
  breaker.on_failures(2, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
  breaker.on_failures(1, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kOpen);
}

TEST(Breaker, OpensWhenMoreFailuresComeAtOnceThanItNeeds) {
  Breaker breaker = make_breaker(3);
  breaker.on_failures(1, kStart);
  breaker.on_failures(~std::size_t{0}, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kOpen);
}

TEST(Breaker, ASuccessInBetweenStartsTheCountOver) {
  Breaker breaker = make_breaker(3);
  breaker.on_failures(2, kStart);
  breaker.on_success(1, kStart);
  breaker.on_failures(2, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

// Two of five requests fail for `slices` tenths of a second, never three in a row.
void mostly_too_slow(Breaker& breaker, int slices, Breaker::TimePoint from) {
  for (int slice = 0; slice < slices; ++slice) {
    const auto now = from + slice * milliseconds{100};
    for (int i = 0; i < 2; ++i) breaker.on_failures(1, now), breaker.on_success(1, now);
    breaker.on_success(1, now);
  }
}

TEST(Breaker, OpensWhenTooManyOfASecondsRequestsFailThoughNeverInARow) {
  Breaker breaker({10, 0.4, milliseconds{100}, milliseconds{400}}, [] { return 0.0; });
  mostly_too_slow(breaker, 4, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);  // too few to judge
  mostly_too_slow(breaker, 2, kStart + milliseconds{400});
  EXPECT_EQ(breaker.state(), Breaker::State::kOpen);
  // One answer in time is what such a server gives anyway: only a probe closes the breaker.
  breaker.on_success(1, kStart + milliseconds{600});
  EXPECT_EQ(breaker.state(), Breaker::State::kOpen);
  breaker.on_probe_sent();
  breaker.on_probe_success(kStart + milliseconds{700});
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(Breaker, ASmallShareOfFailuresNeverOpensIt) {
  Breaker breaker({10, 0.5, milliseconds{100}, milliseconds{400}}, [] { return 0.0; });
  mostly_too_slow(breaker, 100, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(Breaker, FailuresOfAnEarlierSecondAreForgotten) {
  Breaker breaker({10, 0.4, milliseconds{100}, milliseconds{400}}, [] { return 0.0; });
  for (int round = 0; round < 20; ++round) {
    mostly_too_slow(breaker, 4, kStart + round * milliseconds{1500});
    EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
  }
}

TEST(Breaker, WithoutALimitItNeverOpens) {
  Breaker breaker = make_breaker(0);
  breaker.on_failures(1'000'000, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
  EXPECT_FALSE(breaker.probe_due(kStart + std::chrono::hours{1}));
}

TEST(Breaker, ProbesOnceItsBackoffIsOverAndNotBefore) {
  Breaker breaker = make_breaker(1);
  breaker.on_failures(1, kStart);
  ASSERT_EQ(wait_of(breaker, kStart), milliseconds{50});  // no jitter: half a step
  EXPECT_FALSE(breaker.probe_due(kStart + milliseconds{49}));
  EXPECT_TRUE(breaker.probe_due(kStart + milliseconds{50}));
  breaker.on_probe_sent();
  EXPECT_EQ(breaker.state(), Breaker::State::kProbing);
  EXPECT_FALSE(breaker.probe_due(kStart + std::chrono::hours{1}));
}

TEST(Breaker, TheBackoffDoublesUpToItsBound) {
  Breaker breaker = make_breaker(1);
  breaker.on_failures(1, kStart);
  for (const int expected_ms : {50, 100, 200, 200}) {
    EXPECT_EQ(wait_of(breaker, kStart), milliseconds{expected_ms});
    breaker.on_probe_sent();
    breaker.on_probe_failure(kStart);
    EXPECT_EQ(breaker.state(), Breaker::State::kOpen);
  }
}

TEST(Breaker, JitterStaysWithinTheUpperHalfOfAStep) {
  Breaker lowest = make_breaker(1, 0.0);
  Breaker highest = make_breaker(1, 0.999);
  lowest.on_failures(1, kStart);
  highest.on_failures(1, kStart);
  EXPECT_EQ(wait_of(lowest, kStart), milliseconds{50});
  EXPECT_EQ(wait_of(highest, kStart), milliseconds{99});
}

TEST(Breaker, ASuccessfulProbeClosesIt) {
  Breaker breaker = make_breaker(2);
  breaker.on_failures(2, kStart);
  breaker.on_probe_sent();
  breaker.on_probe_success(kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
  breaker.on_failures(1, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(Breaker, AServerThatAnswersOnlyProbesIsAskedLessAndLessOften) {
  Breaker breaker = make_breaker(1);
  for (const int expected_ms : {50, 100, 200}) {
    breaker.on_failures(1, kStart);
    EXPECT_EQ(wait_of(breaker, kStart), milliseconds{expected_ms});
    breaker.on_probe_sent();
    breaker.on_probe_success(kStart);
  }
  breaker.on_success(1, kStart);
  breaker.on_failures(1, kStart);
  EXPECT_EQ(wait_of(breaker, kStart), milliseconds{50});
}

TEST(Breaker, FailuresWhileOpenDoNotPutTheProbeOff) {
  Breaker breaker = make_breaker(1);
  breaker.on_failures(1, kStart);
  breaker.on_failures(10, kStart + milliseconds{40});
  EXPECT_TRUE(breaker.probe_due(kStart + milliseconds{50}));
}

TEST(Breaker, AProbesLateFailureDoesNotReopenWhatASuccessHasClosed) {
  Breaker breaker = make_breaker(1);
  breaker.on_failures(1, kStart);
  breaker.on_probe_sent();
  breaker.on_success(1, kStart);
  breaker.on_probe_failure(kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

}  // namespace breaker_test
}  // namespace fcap::redis
