#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <fcap/time.h>

#include "ledger/ledger.h"

namespace fcap::rules {

/// How far ahead of an instant the time of a reservation may be that counts at it; beyond that it
/// was written by a clock that is wrong.
inline constexpr std::chrono::minutes kReservedAheadMax{5};

/// What has become of a reservation at an instant.
enum class ReservationState : std::uint8_t {
  kLive,       ///< it counts
  kConfirmed,  ///< its entry is in the ledger, and counts instead
  kReleased,
  kExpired,
  kAhead,  ///< more than kReservedAheadMax ahead: it does not count yet
};

/// `reservation` is one of the ledger's.
[[nodiscard]] ReservationState state_of(const ledger::Ledger& ledger,
                                        const ledger::Reservation& reservation,
                                        Instant now) noexcept;

/// How many reservations of a ledger are live.
[[nodiscard]] std::size_t live_reservations(const ledger::Ledger& ledger, Instant now) noexcept;

}  // namespace fcap::rules
