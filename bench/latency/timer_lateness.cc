#include "latency/timer_lateness.h"

#include <chrono>

#include <sys/prctl.h>

#include "latency/sleep_until.h"

namespace fcap::bench {
namespace {

constexpr std::chrono::microseconds kBetweenTimers{200};

}  // namespace

LatencyHistogram timer_lateness(double seconds) {
  LatencyHistogram lateness;
  prctl(PR_SET_TIMERSLACK, 1UL);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  for (auto due = Clock::now(); due < end; due = Clock::now()) {
    due += kBetweenTimers;
    sleep_until(due);
    lateness.record(std::chrono::nanoseconds(Clock::now() - due).count());
  }
  return lateness;
}

}  // namespace fcap::bench
