#include "checker/shown_events.h"

#include <algorithm>

namespace fcap::checker {
namespace {

// A small memory is one part, so that its bound is what it says; users spread evenly over many.
constexpr std::size_t kPartCount = 16;
constexpr std::size_t kOnePartUpTo = 1024;

// Twice what one call can add is enough to catch up, and after a quiet spell no single call pays
// for all.
constexpr std::size_t kExpiredPerCall = 2;

bool same_event(const ledger::Entry& a, const ledger::Entry& b) noexcept {
  return a.fingerprint == b.fingerprint && a.campaign == b.campaign && a.type == b.type;
}

}  // namespace

ShownEvents::ShownEvents(Limits limits) : limits_(limits) {
  parts_.resize(limits.events_max <= kOnePartUpTo ? 1 : kPartCount);
  for (auto& part : parts_) part = std::make_unique<EventsStripe>();
}

ShownEvents::EventsStripe& ShownEvents::part_of(std::string_view user) noexcept {
  // The map in the part uses the same hash's low bits.
  return *parts_[(StringHash()(user) >> 32) % parts_.size()];
}

void ShownEvents::forget(EventsStripe& part, Users::iterator user, std::size_t index) noexcept {
  UserEvents& events = user->second;
  part.events.erase(events[index]);
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(index));
  if (events.empty()) part.users.erase(user);
}

void ShownEvents::forget_oldest(EventsStripe& part) noexcept {
  // The oldest of all is the oldest of its user.
  forget(part, part.users.find(*part.events.front().user), 0);
}

void ShownEvents::forget_expired(EventsStripe& part, Clock::time_point now) const noexcept {
  for (std::size_t i = 0; i < kExpiredPerCall; ++i) {
    if (part.events.empty() || !expired(part.events.front(), now)) return;
    forget_oldest(part);
  }
}

std::size_t ShownEvents::note(std::string_view user, const ledger::Entry& shown,
                              Clock::time_point now) {
  used_.store(true, std::memory_order_relaxed);
  EventsStripe& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  forget_expired(part, now);
  auto known = part.users.find(user);
  if (known == part.users.end()) known = part.users.try_emplace(std::string(user)).first;
  UserEvents& events = known->second;
  try {
    if (events.size() == events.capacity()) events.reserve(2 * events.size() + 2);
    part.events.push_back({.user = &known->first, .entry = shown, .noted_at = now});
  } catch (...) {
    if (events.empty()) part.users.erase(known);
    throw;
  }
  events.push_back(std::prev(part.events.end()));
  std::size_t made_room = 0;
  const auto earlier = std::find_if(events.begin(), std::prev(events.end()),
                                    [&](auto event) { return same_event(event->entry, shown); });
  if (earlier != std::prev(events.end())) {
    ledger::Entry& entry = events.back()->entry;
    entry.time = std::max(entry.time, (*earlier)->entry.time);
    events.back()->shared = (*earlier)->shared;
    forget(part, known, static_cast<std::size_t>(earlier - events.begin()));
  } else if (events.size() > kEventsPerUserMax) {
    if (!expired(*events.front(), now)) ++made_room;
    forget(part, known, 0);
  }
  const std::size_t events_max = std::max<std::size_t>(limits_.events_max / parts_.size(), 1);
  while (part.events.size() > events_max) {
    if (!expired(part.events.front(), now)) ++made_room;
    forget_oldest(part);
  }
  return made_room;
}

ShownEvents::UserEvents::const_iterator ShownEvents::find(const UserEvents& events,
                                                          const ledger::Entry& shown) noexcept {
  return std::find_if(events.begin(), events.end(),
                      [&](auto event) { return same_event(event->entry, shown); });
}

void ShownEvents::mark_shared(std::string_view user, const ledger::Entry& shown) noexcept {
  EventsStripe& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  const auto known = part.users.find(user);
  if (known == part.users.end()) return;
  const auto found = find(known->second, shown);
  if (found != known->second.end()) (*found)->shared = true;
}

ShownEvents::Taken ShownEvents::take_back(std::string_view user,
                                          const ledger::Entry& shown) noexcept {
  if (!used()) return Taken::kNothing;
  EventsStripe& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  const auto known = part.users.find(user);
  if (known == part.users.end()) return Taken::kNothing;
  const UserEvents& events = known->second;
  const auto found = find(events, shown);
  if (found == events.end()) return Taken::kNothing;
  const Taken taken = (*found)->shared ? Taken::kShared : Taken::kLocal;
  forget(part, known, static_cast<std::size_t>(found - events.begin()));
  return taken;
}

std::vector<ledger::Entry> ShownEvents::copy_of(std::string_view user, Clock::time_point now) {
  std::vector<ledger::Entry> copied;
  EventsStripe& part = part_of(user);
  const std::lock_guard lock(part.mutex);
  if (part.events.empty()) return copied;
  const auto known = part.users.find(user);
  if (known == part.users.end()) return copied;
  // The user's events are in the order of their times: the expired ones come first.
  std::size_t expired_count = 0;
  while (expired_count < known->second.size() && expired(*known->second[expired_count], now)) {
    ++expired_count;
  }
  copied.reserve(known->second.size() - expired_count);
  for (std::size_t i = expired_count; i < known->second.size(); ++i) {
    copied.push_back(known->second[i]->entry);
  }
  // Erasing the last one erases the user.
  for (std::size_t i = 0; i < expired_count; ++i) forget(part, known, 0);
  return copied;
}

ShownEvents::Merged ShownEvents::merge_into(std::string_view user, Clock::time_point now,
                                            ledger::Ledger& ledger,
                                            std::span<const std::uint32_t> except) {
  Merged merged;
  if (!used()) return merged;
  // Merged outside the lock: what one user's long history costs is nobody else's wait.
  for (const ledger::Entry& entry : copy_of(user, now)) {
    if (std::find(except.begin(), except.end(), entry.fingerprint) != except.end()) continue;
    if (ledger.contains(entry.campaign, entry.type, entry.fingerprint)) {
      // Another check of this user may have been first.
      if (take_back(user, entry) != Taken::kNothing) ++merged.confirmed;
      continue;
    }
    ledger.merge(entry);
    ++merged.unconfirmed;
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
