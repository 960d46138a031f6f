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

bool History::is_live(const ledger::Reservation& reservation, std::int64_t now_ms) const noexcept {
  const ledger::Entry& event = reservation.event;
  if (reservation.released || to_ms(reservation.expires) <= now_ms) return false;
  if (event.time > instant_from_ms(now_ms) + kReservedAheadMax) return false;
  const std::span<const ledger::Run> runs = ledger_->runs();
  for (std::size_t i = first_run(event.campaign);
       i < runs.size() && runs[i].campaign == event.campaign; ++i) {
    if (runs[i].type != event.type) continue;
    const auto prints = ledger_->fingerprints().subspan(runs[i].begin, runs[i].end - runs[i].begin);
    const auto found = std::find(prints.begin(), prints.end(), event.fingerprint);
    if (found == prints.end()) return true;
    // An entry that is out of reach may or may not have been compacted away.
    const auto index = runs[i].begin + static_cast<std::size_t>(found - prints.begin());
    return to_ms(ledger_->times()[index]) <= now_ms - rules_->retention_ms;
  }
  return true;
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
  live_.clear();
  for (const ledger::Reservation& reservation : ledger_->reservations()) {
    if (!is_live(reservation, now_ms)) continue;
    live_.push_back(&reservation);
    add_reserved(reservation.event.campaign, reservation);
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
