#include "updater/pipeline/loss_statement.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {
namespace {

const std::string all_partitions{LossStatement::kAllPartitions};
const std::string expired_events{LossStatement::kExpired};
const std::string only_repeated{LossStatement::kRepeated};

}  // namespace

void LossStatement::lost(const SlotSet& slots) {
  pending_ |= slots;
  ++losses_;
}

void LossStatement::written(std::uint64_t losses) {
  // A loss that was noted while the write was under way is not in what was written.
  if (losses != losses_) return;
  pending_ = {};
  repeated_ = {};
}

void LossStatement::look(const redis::ConfigRecord& found, const std::string& own,
                         Clock::time_point now) {
  const auto entries_here = found.missing_before.find(own);
  const bool stands_here =
      entries_here != found.missing_before.end() && stands(entries_here->second);
  const auto repeat = [&](const SlotSet& slots) {
    repeated_ |= slots;
    ++losses_;
  };
  if (stands_here) repeated_ = {};
  if (found.created != Instant{}) {
    const bool again = created_ != Instant{} && created_ != found.created;
    if (again && !stands_here) repeat(SlotSet::all());
    created_ = found.created;
  }
  std::map<std::string, Seen> seen;
  for (const auto& [topic, entries] : found.missing_before) {
    const auto all = entries.find(all_partitions);
    if (all == entries.end()) continue;
    const auto before = seen_.find(topic);
    const bool is_new = before == seen_.end() || before->second.events != all->second;
    seen[topic] = is_new ? Seen{all->second, now} : before->second;
    if (is_new && !stands_here && !entries.contains(only_repeated)) repeat(all->second.slots);
  }
  seen_ = std::move(seen);
}

void LossStatement::apply(Partitions& entries, Instant latest) const {
  if (!pending()) return;
  redis::MissingEvents all{latest, pending_ | repeated_};
  for (const auto& [partition, events] : entries) {
    if (partition == expired_events || events.before == Instant{}) continue;
    all.slots |= events.slots;
    all.before = std::max(all.before, events.before);
  }
  // The new statement must differ from the one that stands: otherwise an updater that has compared
  // its marks since that one was seen would take its partitions out of the new one as well.
  if (const auto former = entries.find(all_partitions); former != entries.end()) {
    all.before = std::max(all.before, former->second.before + std::chrono::milliseconds{1});
  }
  std::erase_if(entries, [](const auto& entry) { return entry.first != expired_events; });
  entries.emplace(all_partitions, std::move(all));
  if (pending_.empty()) entries.emplace(only_repeated, Instant{});
}

void LossStatement::expire(Partitions& entries, const redis::MissingEvents& events) {
  const auto [entry, is_new] = entries.try_emplace(expired_events, events);
  if (is_new) return;
  entry->second.before = std::max(entry->second.before, events.before);
  entry->second.slots |= events.slots;
}

bool LossStatement::stands(const Partitions& entries) {
  return entries.contains(all_partitions);
}

bool LossStatement::holds_back(const std::string& topic, const Partitions& entries,
                               Clock::time_point compared) const {
  const auto all = entries.find(all_partitions);
  if (all == entries.end()) return false;
  const auto seen = seen_.find(topic);
  return seen == seen_.end() || seen->second.events != all->second || compared <= seen->second.at;
}

void LossStatement::settle(Partitions& entries, std::int32_t partitions) {
  if (!stands(entries)) return;
  for (std::int32_t i = 0; i < partitions; ++i) {
    if (!entries.contains(std::to_string(i))) return;
  }
  entries.erase(all_partitions);
}

}  // namespace fcap::updater
