#include "updater/marks/log_watch.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {

void LogWatch::begin(const LogIdentity& log, std::int64_t start) {
  forget();
  cluster_ = log.cluster;
  checked_ = log.last ? log.last : log.checked;
  keep_name({log.last, log.checked}, start);
}

void LogWatch::forget() {
  cluster_.clear();
  first_.reset();
  checked_.reset();
  suspect_.reset();
  points_.clear();
  look.reset();
  due = {};
  said_unverified = false;
}

void LogWatch::restart(std::int64_t start) {
  // The topic may be recreated before the first message from `start` is delivered. A message that a
  // look has found, or else the first one that was delivered, proves more than the newest one,
  // which may itself be from the new topic. It must be below `start`, or no mark can name it.
  if (!can_name_checked(start) && !suspect_) suspect_ = first_;
  if (checked_) {
    due = {};
  } else {
    suspect();
  }
  std::erase_if(points_, [start](const LogPoint& point) { return point.offset >= start; });
  const bool can_name_suspect = suspect_ && suspect_->offset < start;
  if (!can_name_checked(start) && !can_name_suspect && !points_.empty()) suspect_ = points_.back();
  keep_name({checked_, suspect_, first_}, start);
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
  const bool knew_none = points_.empty();
  assume(log, start);
  if (log.last && log.last->offset < start && points_.back().offset < log.last->offset) {
    points_.push_back(*log.last);
  }
  if (found_again && !checked_ && !first_) checked_ = found_again;
  if (!knew_none || points_.empty() || can_name_checked(start) || suspect_) return;
  suspect_ = points_.back();
}

void LogWatch::read_in_gap(const LogPoint& point, std::int64_t start) {
  keep_name({point}, start);
  if (!first_) first_ = point;
}

void LogWatch::delivered(const LogPoint& point) {
  if (!points_.empty() && points_.back().offset >= point.offset) return;
  // A mark may stay the same for long behind a dead letter; then it may name an older message.
  if (points_.size() >= kPointsMax) points_.erase(points_.begin() + kPointsMax / 2);
  points_.push_back(point);
  if (!first_) first_ = point;
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
  if (!log.checked && first_ && first_->offset <= log.last->offset) log.checked = first_;
  return log;
}

void LogWatch::suspect() {
  due = {};
  // Only the message before the first of several incidents is certain to precede them all.
  if (!suspect_ && !points_.empty()) suspect_ = points_.back();
}

void LogWatch::start_look(std::int64_t position) {
  std::vector<LogPoint> points;
  for (const auto& known : {first_, checked_}) {
    if (known) points.push_back(*known);
  }
  if (suspect_) points.push_back(*suspect_);
  if (!points_.empty()) points.push_back(points_.back());
  std::ranges::sort(points, {}, &LogPoint::offset);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  start_look(KnownLog{cluster_, std::move(points), position});
}

void LogWatch::end_look(const LogVerdict& verdict) {
  const std::vector<LogPoint> asked = std::move(look->known.points);
  look.reset();
  if (suspect_ && std::ranges::find(asked, *suspect_) != asked.end()) suspect_.reset();
  if (verdict.newest) {
    checked_ = verdict.newest;
  } else if (verdict.is == LogVerdict::Is::kUnknown) {
    checked_.reset();
  }
}

}  // namespace fcap::updater
