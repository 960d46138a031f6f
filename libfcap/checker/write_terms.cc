#include "checker/write_terms.h"

#include "base/clock.h"
#include "ledger/format.h"

namespace fcap::checker {
namespace {

constexpr std::chrono::seconds kClockDifferenceMax{10};

}  // namespace

Reason refuse_writing(const WriteTerms& terms, Instant now) noexcept {
  if (!terms.are_known) return Reason::kUnavailable;
  if (terms.reservation_life_max.count() <= 0) return Reason::kNoConfig;
  // No correct clock shows an instant that a record cannot hold.
  if (ledger::format::representable(now) != now) return Reason::kClock;
  if (!terms.has_clock) return Reason::kPassed;
  if (!terms.clock_difference) return Reason::kClock;
  // `now` is by the caller's clock, which need not be this machine's.
  const auto store_ahead = base::wall_now() + *terms.clock_difference - now;
  return std::chrono::abs(store_ahead) > kClockDifferenceMax ? Reason::kClock : Reason::kPassed;
}

Reason refuse_record(const WriteTerms& terms, std::size_t record_bytes,
                     std::size_t reservations) noexcept {
  if (reservations >= kReservationsMax) return Reason::kTooMany;
  // A quarter of the record stays free, so that entries are never trimmed for reservations.
  if (record_bytes > terms.record_bytes_max / 4 * 3) return Reason::kTooLong;
  return Reason::kPassed;
}

}  // namespace fcap::checker
