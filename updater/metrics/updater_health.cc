#include "updater/metrics/updater_health.h"

namespace fcap::updater {

void Health::beat(Clock::time_point now) noexcept {
  last_beat_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (!beat_action_ || now - last_action_ < beat_interval_) return;
  last_action_ = now;
  beat_action_();
}

bool Health::healthy(Clock::time_point now) const noexcept {
  const Clock::rep last = last_beat_.load(std::memory_order_relaxed);
  return last != 0 && now.time_since_epoch() - Clock::duration{last} < stalled_after_;
}

bool Health::ready(Clock::time_point now, std::string& why) const {
  why.clear();
  if (!healthy(now)) why += "the main loop has stalled\n";
  if (!assigned_.load(std::memory_order_relaxed)) why += "no partition is assigned\n";
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& problem : problems_) {
      if (!problem.empty()) why.append(problem).append("\n");
    }
  }
  for (const auto& check : checks_) {
    if (const std::string lines = check(now); !lines.empty()) why.append(lines).append("\n");
  }
  if (rules_check_ && !rules_check_()) why += "no rules have been loaded\n";
  return why.empty();
}

void Health::set_problem(Problem kind, std::string_view what) {
  const std::lock_guard lock(mutex_);
  std::string& problem = problems_[static_cast<std::size_t>(kind)];
  if (problem != what) problem.assign(what);
}

void Health::on_beat(Clock::duration interval, std::function<void()> action) {
  beat_interval_ = interval;
  beat_action_ = std::move(action);
}

}  // namespace fcap::updater
