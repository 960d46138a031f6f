#include "base/poll_schedule.h"

#include <algorithm>

namespace fcap::base {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIntervalMin{10};
constexpr milliseconds kBackoffMin{1000};

milliseconds scaled(milliseconds length, double factor) {
  return milliseconds{static_cast<milliseconds::rep>(static_cast<double>(length.count()) * factor)};
}

}  // namespace

PollSchedule::PollSchedule(milliseconds interval)
    : interval_(std::max(interval, kIntervalMin)), backoff_(std::min(kBackoffMin, interval_)) {}

milliseconds PollSchedule::after_answer(double random) {
  backoff_ = std::min(kBackoffMin, interval_);
  return scaled(interval_, 0.9 + 0.2 * random);
}

milliseconds PollSchedule::after_failure(double random) {
  const milliseconds delay = scaled(backoff_, 0.5 + 0.5 * random);
  backoff_ = std::min(backoff_ * 2, interval_);
  return delay;
}

}  // namespace fcap::base
