#include "rules/reservation_state.h"

#include <algorithm>

namespace fcap::rules {
namespace {

// The state of a reservation that has no entry.
ReservationState state_without_entry(const ledger::Reservation& reservation, Instant now) noexcept {
  if (reservation.released) return ReservationState::kReleased;
  if (reservation.expires <= now) return ReservationState::kExpired;
  return reservation.event.time > now + kReservedAheadMax ? ReservationState::kAhead
                                                          : ReservationState::kLive;
}

}  // namespace

ReservationState state_of(const ledger::Ledger& ledger, const ledger::Reservation& reservation,
                          Instant now) noexcept {
  const ledger::Entry& event = reservation.event;
  if (ledger.contains(event.campaign, event.type, event.fingerprint)) {
    return ReservationState::kConfirmed;
  }
  return state_without_entry(reservation, now);
}

std::size_t live_reservations(const ledger::Ledger& ledger, Instant now) noexcept {
  const auto may_live = [now](const ledger::Reservation& reservation) {
    return state_without_entry(reservation, now) == ReservationState::kLive;
  };
  const auto all = ledger.reservations();
  auto live = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), may_live));
  for_each_confirmed(ledger, may_live, [&](std::size_t, std::size_t) { --live; });
  return live;
}

}  // namespace fcap::rules
