#include "config/reload_policy.h"

#include <algorithm>
#include <string_view>

namespace fcap::config {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIntervalMin{10};
constexpr milliseconds kBackoffMin{1000};

bool shrunken(std::size_t last, std::size_t next, double share) {
  return static_cast<double>(next) < static_cast<double>(last) * share;
}

std::string fewer(std::size_t next, std::size_t last, std::string_view what) {
  return std::to_string(next) + " " + std::string(what) + " where the last good set has " +
         std::to_string(last);
}

milliseconds scaled(milliseconds length, double factor) {
  return milliseconds{static_cast<milliseconds::rep>(static_cast<double>(length.count()) * factor)};
}

}  // namespace

ReloadJudgement judge_reload(const std::optional<RuleSetSize>& last, const RuleSetSize& next,
                             const ReloadPolicy& policy) {
  if (!last) return {};
  std::string remark;
  if (last->rules > 0 && next.rules == 0) {
    remark = "it is empty: " + fewer(0, last->rules, "rules");
  } else if (shrunken(last->rules, next.rules, policy.shrink_refused_below)) {
    remark = "it has shrunk: " + fewer(next.rules, last->rules, "rules");
  } else if (last->campaigns >= kCatalogGuardedFrom &&
             (next.campaigns == 0 ||
              shrunken(last->campaigns, next.campaigns, policy.shrink_refused_below))) {
    remark = "its catalog has shrunk: " + fewer(next.campaigns, last->campaigns, "campaigns");
  }
  if (!remark.empty()) {
    if (policy.accept_any_shrink) return {true, remark + "; accepted by rules.accept_any_shrink"};
    return {false, remark + " (rules.accept_any_shrink takes it all the same)"};
  }
  if (next.version < last->version) {
    return {true, "its version went back from " + std::to_string(last->version) + " to " +
                      std::to_string(next.version) + ", as after a restored backup"};
  }
  return {};
}

ReloadJudgement judge_segments(const SegmentSet* last, const SegmentSet& next,
                               const ReloadPolicy& policy) {
  if (last == nullptr) return {};
  std::string remark;
  const auto& names = last->names();
  for (std::uint32_t i = 0; i < names.size() && remark.empty(); ++i) {
    if (last->memory(i).members == 0 || next.index_of(names[i])) continue;
    remark = "segment \"" + names[i] + "\" has vanished, which had " +
             std::to_string(last->memory(i).members) + " members";
  }
  const std::uint64_t had = last->memory().members;
  const std::uint64_t has = next.memory().members;
  if (remark.empty() && had >= kMembersGuardedFrom &&
      (has == 0 || shrunken(had, has, policy.shrink_refused_below))) {
    remark = "it has shrunk: " + fewer(has, had, "members");
  }
  if (remark.empty()) return {};
  if (policy.accept_any_shrink) return {true, remark + "; accepted by rules.accept_any_shrink"};
  return {false, remark +
                     " (empty a segment before it is removed; rules.accept_any_shrink takes any "
                     "set)"};
}

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

}  // namespace fcap::config
