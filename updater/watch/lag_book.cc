#include "updater/watch/lag_book.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fcap::updater {

void LagBook::set_done(std::span<const PartitionDone> done, bool joined) {
  joined_ = joined;
  done_.clear();
  for (const PartitionDone& at : done) done_.emplace(at.partition, at.below);
  const auto is_gone = [this](const auto& entry) { return !done_.contains(entry.first); };
  std::erase_if(ends_, is_gone);
  std::erase_if(oldest_, is_gone);
  std::erase_if(starts_, [this](const auto& entry) {
    const auto at = done_.find(entry.first);
    return at == done_.end() || at->second.has_value();
  });
}

void LagBook::set_ends(const Offsets& ends, TimePoint now) {
  for (const auto& [partition, offset] : ends) {
    if (done_.contains(partition)) ends_[partition] = {offset, now};
  }
}

void LagBook::set_starts(const Offsets& starts) {
  for (const auto& [partition, offset] : starts) {
    const auto at = done_.find(partition);
    if (at != done_.end() && !at->second) starts_[partition] = offset;
  }
}

void LagBook::set_oldest(const Offsets& asked, const std::map<std::int32_t, Instant>& found,
                         TimePoint now) {
  for (const auto& [partition, offset] : asked) {
    const auto timestamp = found.find(partition);
    if (timestamp == found.end() || !done_.contains(partition)) continue;
    oldest_[partition] = {offset, timestamp->second, now};
  }
}

std::set<std::int32_t> LagBook::assigned() const {
  std::set<std::int32_t> partitions;
  for (const auto& [partition, done] : done_) partitions.insert(partition);
  return partitions;
}

std::set<std::int32_t> LagBook::without_start() const {
  std::set<std::int32_t> partitions;
  for (const auto& [partition, done] : done_) {
    if (!done && !starts_.contains(partition)) partitions.insert(partition);
  }
  return partitions;
}

std::optional<std::int64_t> LagBook::done_below(std::int32_t partition) const {
  const auto at = done_.find(partition);
  if (at == done_.end()) return std::nullopt;
  if (at->second) return at->second;
  const auto start = starts_.find(partition);
  return start == starts_.end() ? std::nullopt : std::optional(start->second);
}

// The timestamp of the first message that is not done; null: not known. After reading went back,
// that message is an older one than the one whose timestamp was asked for.
const LagBook::Oldest* LagBook::oldest_of(std::int32_t partition) const {
  const auto oldest = oldest_.find(partition);
  const auto done = done_below(partition);
  return oldest != oldest_.end() && done && oldest->second.offset <= *done ? &oldest->second
                                                                           : nullptr;
}

std::optional<std::int64_t> LagBook::lag_of(std::int32_t partition, TimePoint now) const {
  const auto end = ends_.find(partition);
  if (end == ends_.end() || now - end->second.at >= known_for_) return std::nullopt;
  const auto done = done_below(partition);
  // The known end may be older than the progress.
  return done ? std::optional(std::max<std::int64_t>(end->second.offset - *done, 0)) : std::nullopt;
}

LagBook::Offsets LagBook::behind(std::size_t partitions_max, TimePoint now) const {
  std::vector<std::pair<TimePoint, std::int32_t>> waiting;
  for (const auto& [partition, done] : done_) {
    if (lag_of(partition, now).value_or(0) == 0) continue;
    const Oldest* const known = oldest_of(partition);
    waiting.emplace_back(known == nullptr ? TimePoint::min() : known->at, partition);
  }
  std::ranges::sort(waiting);
  if (waiting.size() > partitions_max) waiting.resize(partitions_max);
  Offsets offsets;
  for (const auto& [at, partition] : waiting) offsets[partition] = *done_below(partition);
  return offsets;
}

LagBook::Offsets LagBook::ends(TimePoint now) const {
  Offsets known;
  for (const auto& [partition, end] : ends_) {
    if (now - end.at < known_for_) known.emplace(partition, end.offset);
  }
  return known;
}

Lag LagBook::lag(TimePoint now) const {
  Lag lag;
  if (!joined_) return lag;
  std::int64_t sum = 0;
  bool all_known = true;
  bool oldest_known = true;
  for (const auto& [partition, done] : done_) {
    const auto behind = lag_of(partition, now);
    if (!behind) {
      all_known = false;
      continue;
    }
    lag.by_partition[partition] = *behind;
    sum += *behind;
    if (*behind == 0) continue;
    const Oldest* const oldest = oldest_of(partition);
    if (oldest == nullptr) {
      oldest_known = false;
    } else if (!lag.oldest || oldest->timestamp < *lag.oldest) {
      lag.oldest = oldest->timestamp;
    }
  }
  if (all_known) lag.messages = sum;
  if (!all_known || !oldest_known) lag.oldest.reset();
  return lag;
}

}  // namespace fcap::updater
