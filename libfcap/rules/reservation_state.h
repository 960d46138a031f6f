#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

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

/// Calls visit(reservation, entry), the indices of both, for each of `reservations` that is wanted
/// and whose fingerprint is among the entries'. `reservations`: of one campaign and type, so by
/// fingerprint; wanted(reservation) is true for `wanted_count` of them. In n log n steps, whatever
/// the record is: the entries of many reservations are found in one walk over `prints`.
template <typename Print, typename Wanted, typename Visit>
void match_entries(std::span<const ledger::Reservation> reservations, std::size_t wanted_count,
                   std::span<const Print> prints, Wanted&& wanted, Visit&& visit) {
  constexpr std::size_t kFewMax = 8;
  if (wanted_count <= kFewMax) {
    for (std::size_t i = 0; i < reservations.size(); ++i) {
      if (!wanted(reservations[i])) continue;
      const auto found = std::find(prints.begin(), prints.end(), reservations[i].event.fingerprint);
      if (found != prints.end()) visit(i, static_cast<std::size_t>(found - prints.begin()));
    }
    return;
  }
  for (std::size_t entry = 0; entry < prints.size(); ++entry) {
    const auto found = std::lower_bound(reservations.begin(), reservations.end(), prints[entry],
                                        [](const ledger::Reservation& held, const Print& print) {
                                          return held.event.fingerprint < print;
                                        });
    if (found == reservations.end() || prints[entry] != found->event.fingerprint ||
        !wanted(*found)) {
      continue;
    }
    visit(static_cast<std::size_t>(found - reservations.begin()), entry);
  }
}

/// Calls visit(reservation, entry), the indices of both, for each reservation that has its entry in
/// the ledger and for which wanted(reservation) is true.
template <typename Wanted, typename Visit>
void for_each_confirmed(const ledger::Ledger& ledger, Wanted&& wanted, Visit&& visit) {
  const std::span<const ledger::Reservation> all = ledger.reservations();
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const ledger::Entry& event = all[begin].event;
    std::size_t count = 0;
    for (; end < all.size() && all[end].event.campaign == event.campaign &&
           all[end].event.type == event.type;
         ++end) {
      if (wanted(all[end])) ++count;
    }
    const ledger::Run* const run =
        count == 0 ? nullptr : ledger.find_run(event.campaign, event.type);
    if (run == nullptr) continue;
    match_entries(all.subspan(begin, end - begin), count,
                  ledger.fingerprints().subspan(run->begin, run->end - run->begin), wanted,
                  [&](std::size_t reservation, std::size_t entry) {
                    visit(begin + reservation, run->begin + entry);
                  });
  }
}

}  // namespace fcap::rules
