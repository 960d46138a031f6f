#pragma once

#include <cstddef>

#include <fcap/reason.h>
#include <fcap/store.h>
#include <fcap/time.h>

namespace fcap::checker {

/// How many live reservations a user has at most.
inline constexpr std::size_t kReservationsMax = 64;
/// How long a shared note counts that nobody confirms.
inline constexpr std::chrono::minutes kSharedNoteLife{5};

/// Why a process whose clock says `now` may not write reservations: kUnavailable, kNoConfig or
/// kClock; kPassed where it may.
[[nodiscard]] Reason refuse_writing(const WriteTerms& terms, Instant now) noexcept;

/// Whether a record has no room for one more reservation: kTooMany, kTooLong, or kPassed where it
/// has.
[[nodiscard]] Reason refuse_record(const WriteTerms& terms, std::size_t record_bytes,
                                   std::size_t reservations) noexcept;

}  // namespace fcap::checker
