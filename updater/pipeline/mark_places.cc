#include "updater/pipeline/mark_places.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace fcap::updater {
namespace {

bool was_written_to(const ShardLook& look, const MarkValue& mark) {
  if (!mark.shard) return false;
  const std::string& history = mark.shard->replication;
  // A restarted master keeps its id, and a promoted replica knows the history that it continues.
  return mark.shard->node == look.node || history == look.replication ||
         (!look.former.empty() && history == look.former);
}

MarkValue with_sorted_places(MarkValue mark) {
  std::ranges::sort(mark.shard->places);
  return mark;
}

// Whether each of the mark's places that must have a copy has this one, or a newer one. A place
// whose slot has left, or is leaving, need not have it, because a copy moves with its slot. But if
// the slot was leaving already when the mark was written, and the other one was not, its copy must
// be here. The copy in the new place was written first, where there was nothing to compare with, so
// a shard that had just been emptied would have taken it as well. That the old copy was replaced
// after that, by comparison, shows that the shard still had its data.
bool agreed(const MarkValue& mark, const ShardLook& look, const std::vector<MarkValue>& own) {
  const MarkedShard& shard = *mark.shard;
  const SlotSet stable = look.owned - look.migrating;
  const bool all_leaving = std::ranges::all_of(
      shard.places, [&shard](int place) { return shard.partly.contains(place); });
  return std::ranges::all_of(shard.places, [&](int place) {
    const bool shows = shard.partly.contains(place) && !all_leaving;
    if (!stable.contains(place) && !shows) return true;
    return std::ranges::any_of(own, [&](const MarkValue& copy) {
      if (copy.shard->places.empty() || copy.shard->places.front() != place) return false;
      return copy.shard->serial > shard.serial ||
             with_sorted_places(copy) == with_sorted_places(mark);
    });
  });
}

// The highest of the slots that are not taken yet, or one far from it: slots are mostly moved
// in ascending order.
std::optional<int> another_place(const SlotSet& slots, const std::vector<int>& taken) {
  if (slots.empty()) return std::nullopt;
  for (const std::size_t index : {slots.size() - 1, slots.size() / 2, std::size_t{0}}) {
    const int slot = slots.at(index);
    if (std::ranges::find(taken, slot) == taken.end()) return slot;
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> places_for_mark(const ShardLook& look, const std::vector<int>& places,
                                 const SlotSet& allowed) {
  constexpr std::size_t kCopies = 2;
  const SlotSet stable = look.owned - look.migrating;
  const auto those_in = [&places](const SlotSet& slots) {
    std::vector<int> kept;
    std::ranges::copy_if(places, std::back_inserter(kept),
                         [&slots](int place) { return slots.contains(place); });
    return kept;
  };
  std::vector<int> next = those_in(stable);
  if (next.size() == kCopies) return next;
  if (next.empty()) next = those_in(look.owned);
  if (next.empty() && !places.empty()) return {};
  const SlotSet free = stable & allowed;
  if (free.empty()) return next;
  if (next.size() == kCopies) next.pop_back();
  const bool first = next.empty();
  for (std::size_t missing = first ? kCopies : 1; missing > 0; --missing) {
    const auto place = another_place(free, next);
    if (place) next.insert(next.begin(), *place);
  }
  return next;
}

std::vector<MarkValue> copies_of(const MarkValue& mark) {
  std::vector<MarkValue> copies;
  for (const int place : mark.shard->places) {
    MarkValue& copy = copies.emplace_back(mark);
    auto& places = copy.shard->places;
    std::stable_partition(places.begin(), places.end(),
                          [place](int other) { return other == place; });
  }
  return copies;
}

std::optional<MarkValue> mark_of_shard(const ShardLook& look, std::span<const MarkValue> found) {
  std::vector<MarkValue> own;
  std::ranges::copy_if(found, std::back_inserter(own),
                       [&look](const MarkValue& mark) { return was_written_to(look, mark); });
  const MarkValue* newest = nullptr;
  for (const MarkValue& mark : own) {
    if (newest != nullptr && mark.shard->serial <= newest->shard->serial) continue;
    if (agreed(mark, look, own)) newest = &mark;
  }
  if (newest == nullptr) return std::nullopt;
  return with_sorted_places(*newest);
}

std::vector<MarkValue> half_written(const ShardLook& look, std::span<const MarkValue> found,
                                    const std::optional<MarkValue>& own) {
  std::vector<MarkValue> newer;
  for (const MarkValue& mark : found) {
    if (!was_written_to(look, mark)) continue;
    if (!own || mark.shard->serial > own->shard->serial) newer.push_back(with_sorted_places(mark));
  }
  return newer;
}

}  // namespace fcap::updater
