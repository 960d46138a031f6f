#include "updater/watch/stall_book.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

using std::chrono::seconds;

// Where partitions wait for the same thing, the one that has waited for longest stands for all of
// them.
struct WaitGroup {
  const StallBook::StallReason* first = nullptr;
  std::size_t partitions = 0;
  std::int64_t messages = 0;
  bool all_known = true;
};

std::map<StallBook::Wait, WaitGroup> by_wait(std::span<const StallBook::StallReason> reasons) {
  std::map<StallBook::Wait, WaitGroup> groups;
  for (const StallBook::StallReason& reason : reasons) {
    WaitGroup& group = groups[reason.cause.wait];
    const StallBook::Stall& stall = reason.stall;
    if (group.first == nullptr || stall.since < group.first->stall.since) group.first = &reason;
    ++group.partitions;
    group.messages += stall.messages.value_or(0);
    group.all_known = group.all_known && stall.messages.has_value();
  }
  return groups;
}

std::string line_of(const WaitGroup& group, StallBook::TimePoint now) {
  const StallBook::Stall& stall = group.first->stall;
  const auto waited = std::chrono::floor<seconds>(now - stall.since).count();
  const std::string& why = group.first->cause.text;
  if (stall.commits) {
    return fmt::format("Kafka has answered no commit for {} s: {}", waited, why);
  }
  if (!stall.partition) {
    return fmt::format("no partition has been assigned for {} s: {}", waited, why);
  }
  std::string partitions = fmt::format("partition {}", *stall.partition);
  if (group.partitions > 1) partitions += fmt::format(" and {} more", group.partitions - 1);
  const std::string messages = group.all_known
                                   ? fmt::format("although {} messages wait", group.messages)
                                   : "and it is not known how many messages wait";
  return fmt::format("{}: no progress for {} s {}: {}", partitions, waited, messages, why);
}

}  // namespace

void StallBook::look(bool joined, std::span<const PartitionPosition> positions,
                     std::optional<TimePoint> commits_wait, TimePoint now) {
  if (joined) {
    unassigned_since_.reset();
  } else if (!unassigned_since_) {
    unassigned_since_ = now;
  }
  commits_since_ = commits_wait;
  std::map<std::int32_t, LastKnown> partitions;
  for (const PartitionPosition& at : positions) {
    LastKnown known{at.done, at.done ? at.messages : std::nullopt, now};
    if (const auto found = partitions_.find(at.partition); found != partitions_.end()) {
      const LastKnown& before = found->second;
      // An answer that is missing changes nothing about what was there.
      if (at.done && !at.messages) known.messages = before.messages;
      if (!at.done) known.done = before.done;
      if (known.done == before.done && !before.idle) known.since = before.since;
    }
    // Without a position it is not known whether there is something to do.
    known.idle = at.done && known.messages == 0;
    if (known.idle) known.since = now;
    partitions.emplace(at.partition, known);
  }
  partitions_ = std::move(partitions);
}

std::vector<StallBook::Stall> StallBook::stalls(TimePoint now) const {
  std::vector<Stall> stalls;
  if (unassigned_since_ && now - *unassigned_since_ >= after_) {
    stalls.push_back({.since = *unassigned_since_, .messages = {}});
  }
  if (commits_since_ && now - *commits_since_ >= after_) {
    stalls.push_back({.commits = true, .since = *commits_since_, .messages = {}});
  }
  for (const auto& [partition, known] : partitions_) {
    if (now - known.since < after_) continue;
    stalls.push_back({.partition = partition, .since = known.since, .messages = known.messages});
  }
  return stalls;
}

std::string StallBook::tell(std::span<const StallReason> reasons, TimePoint now,
                            const LogCallback& log) {
  std::string lines;
  for (const auto& [wait, group] : by_wait(reasons)) {
    const std::string line = line_of(group, now);
    if (!lines.empty()) lines += '\n';
    lines += line;
    began_at_ = std::min(began_at_.value_or(now), group.first->stall.since);
    if (said_.insert(wait).second && log) log(LogLevel::kWarning, line);
  }
  if (!lines.empty() || !began_at_) return lines;
  if (log) {
    log(LogLevel::kInfo, fmt::format("progress again, after {} s",
                                     std::chrono::floor<seconds>(now - *began_at_).count()));
  }
  said_.clear();
  began_at_.reset();
  return lines;
}

}  // namespace fcap::updater
