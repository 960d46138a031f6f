#include "checker/shown_events.h"

#include <algorithm>

namespace fcap::checker {
namespace {

// A small memory is one part, so that its bound is what it says; users spread evenly over many.
constexpr std::size_t kPartCount = 16;
constexpr std::size_t kOnePartUpTo = 1024;

bool same_event(const ledger::Entry& a, const ledger::Entry& b) noexcept {
  return a.fingerprint == b.fingerprint && a.campaign == b.campaign && a.type == b.type;
}

}  // namespace

ShownEvents::ShownEvents(Limits limits) : limits_(limits) {
  parts_.resize(limits.events_max <= kOnePartUpTo ? 1 : kPartCount);
  for (auto& part : parts_) part = std::make_unique<Part>();
}

ShownEvents::Part& ShownEvents::part_of(std::string_view user) noexcept {
  // The map in the part uses the same hash's low bits.
  const std::size_t hash = std::hash<std::string_view>()(user);
  return *parts_[(hash >> 32) % parts_.size()];
}

void ShownEvents::forget(Part& part, Events::iterator event) noexcept {
  const auto [first, last] = part.by_user.equal_range(event->user);
  const auto found =
      std::find_if(first, last, [&](const auto& indexed) { return indexed.second == event; });
  // The index first: its key looks at the event's string.
  part.by_user.erase(found);
  part.events.erase(event);
}

void ShownEvents::forget_expired(Part& part, Clock::time_point now) const noexcept {
  while (!part.events.empty() && expired(part.events.front(), now)) {
    forget(part, part.events.begin());
  }
}

std::size_t ShownEvents::note(std::string_view user, const ledger::Entry& shown,
                              Clock::time_point now) {
  used_.store(true, std::memory_order_relaxed);
  Part& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  forget_expired(part, now);
  ledger::Entry entry = shown;
  const auto [first, last] = part.by_user.equal_range(user);
  const auto noted = std::find_if(
      first, last, [&](const auto& indexed) { return same_event(indexed.second->entry, shown); });
  if (noted != last) {
    entry.time = std::max(entry.time, noted->second->entry.time);
    forget(part, noted->second);
  }
  std::size_t made_room = 0;
  const std::size_t events_max = std::max<std::size_t>(limits_.events_max / parts_.size(), 1);
  while (part.events.size() >= events_max) {
    forget(part, part.events.begin());
    ++made_room;
  }
  part.events.push_back({std::string(user), entry, now});
  const auto added = std::prev(part.events.end());
  try {
    part.by_user.emplace(added->user, added);
  } catch (...) {
    part.events.erase(added);
    throw;
  }
  return made_room;
}

ShownEvents::Merged ShownEvents::merge_into(std::string_view user, Clock::time_point now,
                                            ledger::Ledger& ledger) {
  Merged merged;
  if (!used_.load(std::memory_order_relaxed)) return merged;
  Part& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  if (part.events.empty()) return merged;
  auto [next, last] = part.by_user.equal_range(user);
  while (next != last) {
    const Events::iterator event = next->second;
    const ledger::Entry& entry = event->entry;
    const bool confirmed = ledger.contains(entry.campaign, entry.type, entry.fingerprint);
    if (!confirmed && !expired(*event, now)) {
      ledger.merge(entry);
      ++merged.unconfirmed;
      ++next;
      continue;
    }
    if (confirmed) ++merged.confirmed;
    next = part.by_user.erase(next);
    part.events.erase(event);
  }
  return merged;
}

std::size_t ShownEvents::size() const noexcept {
  std::size_t size = 0;
  for (const auto& part : parts_) {
    const std::lock_guard lock(part->mutex);
    size += part->events.size();
  }
  return size;
}

}  // namespace fcap::checker
