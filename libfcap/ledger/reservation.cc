// Reservations: rare frames, so they are kept apart from what every check reads.
#include <algorithm>
#include <tuple>

#include "ledger/encode.h"
#include "ledger/encode_runs.h"
#include "ledger/format.h"
#include "ledger/ledger.h"

namespace fcap::ledger {
namespace {

auto identity_of(const Reservation& reservation) noexcept {
  const Entry& event = reservation.event;
  return std::tuple(event.campaign, event.type, event.fingerprint);
}

Instant load_time(const char* at) noexcept {
  return instant_from_ms(static_cast<std::int64_t>(format::load<format::kTimeBytes>(at)));
}

}  // namespace

bool Ledger::append_reservation(std::string_view payload) {
  if (payload.size() < format::kReservationPayloadBytes) return false;
  const char* at = payload.data();
  const auto flags = static_cast<std::uint8_t>(*at);
  constexpr std::uint8_t kKnown =
      format::kTypeMask | format::kReservationHasCreative | format::kReservationReleased;
  const bool has_creative = (flags & format::kReservationHasCreative) != 0;
  if ((flags & ~kKnown) != 0 || payload.size() != format::kReservationPayloadBytes +
                                                      (has_creative ? format::kHashBytes : 0)) {
    return false;
  }
  Reservation reservation;
  Entry& event = reservation.event;
  event.type = static_cast<EventType>(flags & format::kTypeMask);
  event.campaign = format::load<format::kHashBytes>(at + 1);
  event.time = load_time(at + 7);
  event.fingerprint = static_cast<std::uint32_t>(format::load<format::kFingerprintBytes>(at + 13));
  reservation.expires = event.time + std::chrono::milliseconds{static_cast<std::int64_t>(
                                         format::load<format::kLifeBytes>(at + 17))};
  if (has_creative) event.creative = format::load<format::kHashBytes>(at + 21);
  reservation.released = (flags & format::kReservationReleased) != 0;
  reservations_.push_back(reservation);
  return true;
}

void Ledger::merge(const Reservation& reservation) {
  Reservation held = reservation;
  held.event.time = format::representable(held.event.time);
  held.event.campaign &= format::kHashMask;
  held.event.creative &= format::kHashMask;
  held.expires =
      std::clamp(held.expires, held.event.time, held.event.time + format::kReservationLifeMax);
  if (erased_before_ && held.event.time <= *erased_before_) return;
  reservations_.push_back(held);
  settle_reservations();
}

const Reservation* Ledger::find_reservation(std::uint64_t campaign, EventType type,
                                            std::uint32_t fingerprint) const noexcept {
  const auto key = std::tuple(campaign, type, fingerprint);
  const auto found = std::lower_bound(
      reservations_.begin(), reservations_.end(), key,
      [](const Reservation& held, const auto& wanted) { return identity_of(held) < wanted; });
  return found == reservations_.end() || identity_of(*found) != key ? nullptr : &*found;
}

void Ledger::merge_reservations(const Ledger& other) {
  if (other.reservations_.empty()) return;
  reservations_.insert(reservations_.end(), other.reservations_.begin(), other.reservations_.end());
  settle_reservations();
}

// Merges copies of one identity, whatever their order and number.
void Ledger::settle_reservations() {
  std::sort(reservations_.begin(), reservations_.end(),
            [](const auto& a, const auto& b) { return identity_of(a) < identity_of(b); });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < reservations_.size(); ++i) {
    Reservation& into = reservations_[kept];
    const Reservation& from = reservations_[i];
    if (identity_of(into) != identity_of(from)) {
      reservations_[++kept] = from;
      continue;
    }
    into.released = into.released || from.released;
    into.expires = std::max(into.expires, from.expires);
    if (std::tie(into.event.time, into.event.creative) <
        std::tie(from.event.time, from.event.creative)) {
      into.event = from.event;
    }
  }
  reservations_.resize(kept + 1);
}

namespace format {

std::size_t frame_bytes(const Reservation& reservation) noexcept {
  return 2 + kReservationPayloadBytes + (reservation.event.creative != 0 ? kHashBytes : 0);
}

}  // namespace format

void append_reservation(const Reservation& reservation, std::string& out) {
  const Entry& event = reservation.event;
  const bool has_creative = event.creative != 0;
  const Instant time = format::representable(event.time);
  const auto life = std::clamp<std::int64_t>(to_ms(reservation.expires) - to_ms(time), 0,
                                             format::kReservationLifeMax.count());
  using format::store;
  out.push_back(static_cast<char>(format::Tag::kReservation));
  out.push_back(static_cast<char>(format::frame_bytes(reservation) - 2));
  out.push_back(static_cast<char>((static_cast<std::uint8_t>(event.type) & format::kTypeMask) |
                                  (has_creative ? format::kReservationHasCreative : 0) |
                                  (reservation.released ? format::kReservationReleased : 0)));
  store<format::kHashBytes>(event.campaign, out);
  store<format::kTimeBytes>(static_cast<std::uint64_t>(to_ms(time)), out);
  store<format::kFingerprintBytes>(event.fingerprint, out);
  store<format::kLifeBytes>(static_cast<std::uint64_t>(life), out);
  if (has_creative) store<format::kHashBytes>(event.creative, out);
}

}  // namespace fcap::ledger
