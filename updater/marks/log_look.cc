#include "updater/marks/log_look.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {

LogVerdict judge_log(const KnownLog& known, const LogLook& look) {
  using LogMatch = LogVerdict::LogMatch;
  const auto another = [&known](std::string why) {
    return LogVerdict{.is = LogMatch::kAnother, .why = std::move(why), .shown_by = known.points};
  };
  if (!known.cluster.empty() && !look.cluster.empty() && known.cluster != look.cluster) {
    return another(fmt::format("it is in cluster {}; the log read before was in cluster {}",
                               look.cluster, known.cluster));
  }
  // Also what was read before reading went back to an earlier position.
  std::int64_t reached = known.position;
  for (const LogPoint& point : known.points) reached = std::max(reached, point.offset + 1);
  if (look.high < reached) {
    return another(
        fmt::format("it ends at offset {}; the log read before reached {}", look.high, reached));
  }
  LogVerdict verdict;
  for (std::size_t i = 0; i < known.points.size() && i < look.found.size(); ++i) {
    const LogPoint& point = known.points[i];
    // What is gone, expired or compacted away, says nothing.
    if (!look.found[i] || look.found[i]->offset != point.offset) continue;
    if (look.found[i] != point) {
      return another(
          fmt::format("offset {} holds another message than the one read before", point.offset));
    }
    verdict.newest = point;
    verdict.shown_by.push_back(point);
  }
  if (verdict.newest || known.points.empty()) return verdict;
  return {LogMatch::kUnknown,
          fmt::format("the message at offset {}, which would identify it, no longer exists",
                      known.points.back().offset)};
}

LogVerdict judge_mark(const KnownLog& mark, const LogLook& look) {
  using LogMatch = LogVerdict::LogMatch;
  LogVerdict verdict = judge_log(mark, look);
  if (verdict.is == LogMatch::kSame && mark.points.empty() && look.low < mark.position) {
    verdict = {LogMatch::kUnproven,
               fmt::format("it names no message, and the log has some from {} on", look.low)};
  }
  return verdict;
}

std::vector<LogPoint> points_of(const LogIdentity& log) {
  std::vector<LogPoint> points;
  if (log.checked && log.checked != log.last) points.push_back(*log.checked);
  if (log.last) points.push_back(*log.last);
  return points;
}

}  // namespace fcap::updater
