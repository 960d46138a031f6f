#include "redis/replica_watch.h"

#include <algorithm>

namespace fcap::redis {
namespace {

// What ends a master also takes down its replicas' links, and a replica may say so before the
// master is known to be lost.
constexpr std::chrono::seconds kSameMoment{2};
// More than lag_max may be, in seconds, which is how often positions are noted.
constexpr std::size_t kPositionsMax = 128;
// The weight of a new time among the former ones.
constexpr int kNewTimeShare = 4;
// A fifth: times that differ by less change places all the time.
constexpr int kClearlyNearer = 5;

void smooth(std::optional<ReplicaWatch::Duration>& time, ReplicaWatch::Duration taken) noexcept {
  time = time ? *time + (taken - *time) / kNewTimeShare : taken;
}

bool clearly_less(ReplicaWatch::Duration one, ReplicaWatch::Duration other) noexcept {
  return one + other / kClearlyNearer < other;
}

}  // namespace

void ReplicaWatch::note_master(const PositionAnswer& answer) {
  if (lost_at_) return;
  // The stream has begun again: the server was restarted, or is another one.
  if (!positions_.empty() && answer.position < positions_.back().position) positions_.clear();
  if (positions_.size() >= kPositionsMax) positions_.pop_front();
  positions_.push_back({answer.position, answer.asked_at});
  smooth(master_time_, answer.answered_at - answer.asked_at);
  compare_times();
}

void ReplicaWatch::note_replica(const PositionAnswer& answer) {
  if (lost_at_) return;
  smooth(replica_time_, answer.answered_at - answer.asked_at);
  compare_times();
  if (!answer.link_up) {
    if (!link_down_at_) link_down_at_ = answer.answered_at;
    return;
  }
  link_down_at_.reset();
  reached_at_.reset();
  for (const DatedPosition& known : positions_) {
    if (known.position <= answer.position) reached_at_ = known.at;
  }
}

void ReplicaWatch::note_master_silent(TimePoint asked_at, TimePoint now) {
  if (master_time_) master_time_ = std::max(*master_time_, now - asked_at);
  compare_times();
}

void ReplicaWatch::note_replica_silent(TimePoint asked_at, TimePoint now) {
  if (replica_time_) replica_time_ = std::max(*replica_time_, now - asked_at);
  compare_times();
}

void ReplicaWatch::forget_replica() noexcept {
  reached_at_.reset();
  link_down_at_.reset();
  replica_time_.reset();
  replica_is_nearer_ = false;
}

void ReplicaWatch::on_master_lost(TimePoint now) {
  if (!lost_at_) lost_at_ = now;
}

// What is known is about the master that was lost.
void ReplicaWatch::on_master_found() noexcept {
  if (!lost_at_) return;
  lost_at_.reset();
  positions_.clear();
  master_time_.reset();
  forget_replica();
}

void ReplicaWatch::compare_times() noexcept {
  if (!master_time_ || !replica_time_) return;
  if (clearly_less(*replica_time_, *master_time_)) replica_is_nearer_ = true;
  if (clearly_less(*master_time_, *replica_time_)) replica_is_nearer_ = false;
}

bool ReplicaWatch::is_well(TimePoint now) const noexcept {
  const TimePoint then = lost_at_.value_or(now);
  if (!reached_at_ || then - *reached_at_ > lag_max_) return false;
  return !link_down_at_ || (lost_at_ && then - *link_down_at_ < kSameMoment);
}

bool ReplicaWatch::may_read(TimePoint now) const noexcept {
  if (lost_at_) return now < *lost_at_ + kStandsInFor && is_well(now);
  return reads_ == RedisReplicaReads::kNearest && replica_is_nearer_ && is_well(now);
}

ReplicaWatch::TimePoint ReplicaWatch::until() const noexcept {
  if (lost_at_) return *lost_at_ + kStandsInFor;
  if (reads_ == RedisReplicaReads::kNearest && reached_at_) return *reached_at_ + lag_max_;
  return TimePoint::max();
}

std::string ReplicaWatch::state_text(TimePoint now) const {
  if (link_down_at_) return "its link to the master is down";
  if (!reached_at_) return "how far it is behind the master is not known";
  const auto lag =
      std::chrono::floor<std::chrono::milliseconds>(lost_at_.value_or(now) - *reached_at_);
  return std::to_string(lag.count()) + " ms behind the master";
}

}  // namespace fcap::redis
