#include "rules/reservation_state.h"

#include <algorithm>

namespace fcap::rules {

ReservationState state_of(const ledger::Ledger& ledger, const ledger::Reservation& reservation,
                          Instant now) noexcept {
  const ledger::Entry& event = reservation.event;
  if (ledger.contains(event.campaign, event.type, event.fingerprint)) {
    return ReservationState::kConfirmed;
  }
  if (reservation.released) return ReservationState::kReleased;
  if (reservation.expires <= now) return ReservationState::kExpired;
  return event.time > now + kReservedAheadMax ? ReservationState::kAhead : ReservationState::kLive;
}

std::size_t live_reservations(const ledger::Ledger& ledger, Instant now) noexcept {
  return static_cast<std::size_t>(
      std::count_if(ledger.reservations().begin(), ledger.reservations().end(),
                    [&](const ledger::Reservation& reservation) {
                      return state_of(ledger, reservation, now) == ReservationState::kLive;
                    }));
}

}  // namespace fcap::rules
