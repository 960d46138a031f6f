#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcap/cplusplus.h>
#include <fcap/export.h>

namespace fcap {

/// Why a verdict, a check, a page or a hard call ended as it did: one list, because most reasons
/// are the same for all of them.
enum class Reason : std::uint8_t {
  // --- By the user's history.

  kPassed,  ///< no enforced rule in force stands in the way
  kCapped,  ///< a rule stands in the way: Verdict::rule_id

  // --- Of hard calls alone. After all but the first two nothing was written, unless the result
  // says `unknown`.

  kDone,        ///< written by this call
  kRepeated,    ///< an earlier call with this event id, or the event itself, was there already
  kReleased,    ///< this event id was released, and cannot be reserved again within a day
  kIncomplete,  ///< a rule reaches back to where the record was trimmed, or where events are being
                ///< read again after a loss; or an erasure reaches minutes ahead of now
  kTooMany,     ///< the user has 64 live reservations
  kTooLong,   ///< the user's record has no room: reservations may fill three quarters of the bound
  kNoConfig,  ///< the updater's configuration is not in Redis, which has lost its data, or no
              ///< updater has been there; or it has a format that this release does not know
  kClock,     ///< this machine's clock is more than 10 s away from Redis', or that is not known
  kConflict,  ///< each time, another writer had changed the record since it was read

  // --- Without the user's history.

  kNoUser,       ///< the user id is empty or configured as null
  kNoRules,      ///< no rule set has been loaded yet
  kTimeout,      ///< there was no answer before the deadline
  kUnavailable,  ///< the store cannot be reached, or has not been yet, or answered with an error
  kBreakerOpen,  ///< the store failed repeatedly and is being left alone
  kOverloaded,   ///< a bounded queue is full, or memory has run out
  kUndecodable,  ///< the user's record is not one that this version can read
  kForked,       ///< this process is a fork of the one that made the Checker
  kShutdown,     ///< the Checker is being destroyed
  kReentrant,    ///< a blocking call from inside a callback
  /// An argument is outside its range: an id over 256 bytes, a candidate without a campaign, an
  /// event id that is empty or there twice, more than 64 of them, or a life that is not above 0. Or
  /// the event id belongs to another creative of the campaign.
  kInvalid,
};

inline constexpr std::size_t kReasonCount = static_cast<std::size_t>(Reason::kInvalid) + 1;

/// A word for a reason, as used in JSON and metrics: "passed", "capped", "done", "no_user",
/// "timeout"…
[[nodiscard]] FCAP_EXPORT std::string_view to_string(Reason reason) noexcept;

/// A sentence for a reason, which names what to look at where there is something.
[[nodiscard]] FCAP_EXPORT std::string_view describe(Reason reason) noexcept;

}  // namespace fcap
