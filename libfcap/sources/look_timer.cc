#include "sources/look_timer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace fcap::sources {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kListenTimeout{5'000};
// Between two looks, however many changes are announced.
constexpr milliseconds kLookGap{100};
// poll() takes no more than an int of them.
constexpr milliseconds kWaitMax{3'600'000};

}  // namespace

LookTimer::LookTimer(milliseconds interval, base::LoopEvents events)
    : events_(events),
      schedule_(interval),
      // Spreads processes; nothing depends on its quality.
      random_(static_cast<std::minstd_rand::result_type>(
          Clock::now().time_since_epoch().count() ^ (static_cast<long long>(::getpid()) << 16))) {}

void LookTimer::listen(std::string conninfo, std::string channel) {
  listener_.emplace(std::move(conninfo), std::move(channel));
}

bool LookTimer::wait() {
  const auto looked_at = Clock::now();
  while (true) {
    auto until = look_at_;
    if (listener_ && listener_->connect_at()) until = std::min(until, *listener_->connect_at());
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    const auto timeout = std::clamp(left, milliseconds{0}, kWaitMax);
    std::array<pollfd, 3> polled{pollfd{events_.stop, POLLIN, 0}, pollfd{events_.wake, POLLIN, 0},
                                 pollfd{listener_ ? listener_->socket() : -1, POLLIN, 0}};
    (void)::poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
    if (polled[0].revents != 0) return false;
    if (polled[1].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(events_.wake, &count, sizeof count);
      announced_ = true;
      look_at_ = Clock::now();
    }
    if (polled[2].revents != 0 && listener_->take_notifications()) {
      announced_ = true;
      look_at_ = std::min(look_at_, std::max(looked_at + kLookGap, Clock::now()));
    }
    connect_listener();
    if (Clock::now() >= look_at_) return !stopping();
  }
}

void LookTimer::connect_listener() {
  if (!listener_) return;
  const auto due = listener_->connect_at();
  if (!due || Clock::now() < *due) return;
  const Status status = listener_->connect({Clock::now() + kListenTimeout, events_.stop}, random());
  if (!status.ok()) return;
  // Changes made while nobody listened were not announced.
  announced_ = true;
  look_at_ = Clock::now();
}

void LookTimer::looked(bool answered, bool changed) {
  const bool announced = std::exchange(announced_, false);
  if (changed && !announced && listener_) listener_->found_by_polling();
  look_at_ = Clock::now() +
             (answered ? schedule_.after_answer(random()) : schedule_.after_failure(random()));
}

bool LookTimer::stopping() const {
  pollfd polled{events_.stop, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace fcap::sources
