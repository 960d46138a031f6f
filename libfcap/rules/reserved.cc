// The part of History that knows reservations: few at a time, and most ledgers have none.
#include <algorithm>

#include "rules/history.h"

namespace fcap::rules {
namespace {

constexpr unsigned kTypeBits = 2;

std::uint64_t reserved_key(std::uint64_t target_key, EventType type) noexcept {
  return target_key << kTypeBits | static_cast<std::uint64_t>(type);
}

bool by_key(const Reserved& a, const Reserved& b) noexcept {
  return a.key < b.key;
}

}  // namespace

// Finds the live reservations: not released, not expired, not confirmed by an entry. An entry that
// the retention has passed confirms nothing: compaction may have removed it or not, and the answer
// must be the same.
void History::find_live(std::int64_t now_ms) {
  const Instant latest = instant_from_ms(now_ms) + kReservedAheadMax;
  const auto may_live = [&](const ledger::Reservation& reservation) {
    return !reservation.released && to_ms(reservation.expires) > now_ms &&
           reservation.event.time <= latest;
  };
  const std::span<const ledger::Reservation> all = ledger_->reservations();
  live_.clear();
  for (const ledger::Reservation& reservation : all) {
    live_.push_back(may_live(reservation) ? &reservation : nullptr);
  }
  for_each_confirmed(*ledger_, may_live, [&](std::size_t reservation, std::size_t entry) {
    if (to_ms(ledger_->times()[entry]) > now_ms - rules_->retention_ms) {
      live_[reservation] = nullptr;
    }
  });
  std::erase(live_, nullptr);
}

void History::add_reserved(std::uint64_t target_key, const ledger::Reservation& reservation) {
  reserved_.push_back({.key = reserved_key(target_key, reservation.event.type),
                       .time_ms = to_ms(reservation.event.time),
                       .expires_ms = to_ms(reservation.expires)});
  reserved_marks_ |= std::uint64_t{1} << (target_key % 64);
}

void History::add_reserved_of_targets(const ledger::Reservation& reservation) {
  const ledger::Entry& event = reservation.event;
  const auto add = [&](Scope scope, std::uint64_t id) {
    if (find(scope, id) != kNone) add_reserved(key_of(scope, id), reservation);
  };
  if (asked_user_) add(Scope::kUser, 0);
  if (asked_creatives_ && event.creative != 0) add(Scope::kCreative, event.creative);
  if (!asked_catalog_) return;
  const CompiledCampaign* campaign = rules_->campaigns.find(event.campaign);
  if (campaign == nullptr) return;
  if (campaign->advertiser != kNone) add(Scope::kAdvertiser, campaign->advertiser);
  for (const std::uint32_t group : rules_->groups_of(*campaign)) add(Scope::kGroup, group);
}

// Campaigns come first, because their scope's number is 0, and in the order of the ledger's
// reservations, which is that of their keys.
void History::gather_reserved(std::int64_t now_ms) {
  static_assert(static_cast<int>(Scope::kCampaign) == 0);
  reserved_.clear();
  find_live(now_ms);
  for (const ledger::Reservation* reservation : live_) {
    add_reserved(reservation->event.campaign, *reservation);
  }
  if (!asked_user_ && !asked_catalog_ && !asked_creatives_) return;
  for (const ledger::Reservation* reservation : live_) add_reserved_of_targets(*reservation);
  const auto of_targets = reserved_.begin() + static_cast<std::ptrdiff_t>(live_.size());
  if (!std::is_sorted(of_targets, reserved_.end(), by_key)) {
    std::sort(of_targets, reserved_.end(), by_key);
  }
}

std::span<const Reserved> History::reserved(std::uint64_t target_key,
                                            EventType type) const noexcept {
  // Few as they usually are, a search would cost more than a walk.
  constexpr std::size_t kWalkMax = 16;
  const std::uint64_t key = reserved_key(target_key, type);
  const auto end = reserved_.end();
  auto first = reserved_.begin();
  if (reserved_.size() > kWalkMax) {
    first = std::lower_bound(first, end, Reserved{.key = key}, by_key);
  }
  while (first != end && first->key < key) ++first;
  auto last = first;
  while (last != end && last->key == key) ++last;
  return {first, last};
}

}  // namespace fcap::rules
