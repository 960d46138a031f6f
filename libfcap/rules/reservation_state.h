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

/// Calls visit(reservation, entry), the indices of both, for each reservation that has its entry in
/// the ledger and for which wanted(reservation) is true. In n log n steps, whatever the record is:
/// an entry is found by walking its run, so the entries of many reservations are found in one walk.
template <typename Wanted, typename Visit>
void for_each_confirmed(const ledger::Ledger& ledger, Wanted&& wanted, Visit&& visit) {
  constexpr std::size_t kFewMax = 8;
  const std::span<const ledger::Reservation> all = ledger.reservations();
  const auto print_of = [&](std::size_t i) { return all[i].event.fingerprint; };
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
    const auto prints = ledger.fingerprints().subspan(run->begin, run->end - run->begin);
    if (count <= kFewMax) {
      for (std::size_t i = begin; i < end; ++i) {
        if (!wanted(all[i])) continue;
        const auto found = std::find(prints.begin(), prints.end(), print_of(i));
        if (found != prints.end()) {
          visit(i, run->begin + static_cast<std::size_t>(found - prints.begin()));
        }
      }
      continue;
    }
    const auto group = all.subspan(begin, end - begin);
    for (std::size_t entry = run->begin; entry < run->end; ++entry) {
      const std::uint32_t print = ledger.fingerprints()[entry];
      const auto found =
          std::lower_bound(group.begin(), group.end(), print,
                           [](const ledger::Reservation& held, std::uint32_t wanted_print) {
                             return held.event.fingerprint < wanted_print;
                           });
      if (found == group.end() || found->event.fingerprint != print || !wanted(*found)) continue;
      visit(begin + static_cast<std::size_t>(found - group.begin()), entry);
    }
  }
}

}  // namespace fcap::rules
