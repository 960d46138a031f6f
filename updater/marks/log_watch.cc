#include "updater/marks/log_watch.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {

void LogWatch::begin(const LogIdentity& log, std::int64_t start,
                     std::optional<LogPoint> found_again) {
  forget();
  cluster_ = log.cluster;
  know(log, start, found_again);
}

void LogWatch::forget() {
  cluster_.clear();
  first_.reset();
  checked_.reset();
  suspect_.reset();
  below_.reset();
  reached_ = 0;
  points_.clear();
  look.reset();
  due = {};
  said_unverified = false;
}

void LogWatch::restart(std::int64_t start) {
  due = {};
  if (!points_.empty()) reached_ = std::max(reached_, points_.back().offset + 1);
  std::erase_if(points_, [start](const LogPoint& point) { return point.offset >= start; });
  // The topic may be recreated before the first message from `start` is delivered, or may have been
  // already. So the next marks name the message that is the most certain to be of the log that was
  // read up to `start`: one that a look has found, or else the first one that was delivered. The
  // newest one may itself be from the new topic.
  const auto can_be_named = [start](const std::optional<LogPoint>& known) {
    return known && known->offset < start;
  };
  if (can_be_named(checked_)) below_ = checked_;
  if (!can_be_named(below_)) below_ = first_;
  if (!can_be_named(below_)) below_ = suspect_;
  if (!can_be_named(below_)) below_.reset();
  if (!below_ && !points_.empty()) below_ = points_.back();
  keep_name({below_}, start);
  first_.reset();
}

void LogWatch::keep_name(std::initializer_list<std::optional<LogPoint>> known, std::int64_t start) {
  for (const auto& point : known) {
    if (points_.empty() && point && point->offset < start) points_.push_back(*point);
  }
}

void LogWatch::assume(const LogIdentity& log, std::int64_t start) {
  keep_name({log.last, log.checked}, start);
}

void LogWatch::know(const LogIdentity& log, std::int64_t start,
                    std::optional<LogPoint> found_again) {
  assume(log, start);
  for (const auto& point : {found_again, log.last}) {
    if (!point || point->offset >= start) continue;
    if (points_.empty() || points_.back().offset < point->offset) points_.push_back(*point);
  }
  if (!found_again || first_) return;
  if (!checked_) checked_ = found_again;
  if (!below_ && found_again->offset < start) below_ = found_again;
}

void LogWatch::read_first(const LogPoint& point) {
  if (first_) return;
  first_ = point;
  if (!below_ && !points_.empty()) below_ = points_.back();
}

void LogWatch::read_in_gap(const LogPoint& point, std::int64_t start) {
  read_first(point);
  keep_name({point}, start);
}

void LogWatch::delivered(const LogPoint& point) {
  if (!points_.empty() && points_.back().offset >= point.offset) return;
  // A mark may stay the same for long behind a dead letter; then it may name an older message.
  if (points_.size() >= kPointsMax) points_.erase(points_.begin() + kPointsMax / 2);
  read_first(point);
  points_.push_back(point);
}

LogIdentity LogWatch::identity(std::int64_t position) {
  while (points_.size() > 1 && points_[1].offset < position) points_.pop_front();
  LogIdentity log{.cluster = cluster_};
  if (points_.empty() || points_.front().offset >= position) return log;
  log.last = points_.front();
  // The newest message that a look has found, or that precedes the trouble, proves the most. The
  // first one delivered since a restart may already be from another log.
  for (const auto& known : {checked_, suspect_}) {
    if (known && known->offset <= log.last->offset) log.checked = known;
  }
  for (const auto& known : {below_, first_}) {
    if (!log.checked && known && known->offset <= log.last->offset) log.checked = known;
  }
  return log;
}

void LogWatch::suspect() {
  due = {};
  // Only the message before the first of several incidents is certain to precede them all.
  if (!suspect_ && !points_.empty()) suspect_ = points_.back();
}

void LogWatch::start_look(std::int64_t position) {
  std::vector<LogPoint> points;
  for (const auto& known : {first_, below_, checked_, suspect_}) {
    if (known) points.push_back(*known);
  }
  if (!points_.empty()) points.push_back(points_.back());
  std::ranges::sort(points, {}, &LogPoint::offset);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  start_look(KnownLog{cluster_, std::move(points), std::max(position, reached_)});
}

void LogWatch::end_look(const LogVerdict& verdict) {
  const std::vector<LogPoint> asked = std::move(look->known.points);
  look.reset();
  if (suspect_ && std::ranges::find(asked, *suspect_) != asked.end()) suspect_.reset();
  if (verdict.newest) {
    checked_ = verdict.newest;
    reached_ = 0;
  } else if (verdict.is == LogVerdict::LogMatch::kUnknown) {
    checked_.reset();
  }
}

}  // namespace fcap::updater
