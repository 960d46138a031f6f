#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <fcap/check_token.h>
#include <fcap/subject.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// An impression that is about to be shown, or has just been. The views must outlive the call, or
/// the start of an asynchronous one.
struct Impression {
  Subject subject;
  Candidate candidate;
  /// The one that will be published (event_id, or else imp_id). 1 to 256 bytes, and unique: see
  /// Checker.
  std::string_view event_id;
  /// When it is shown, which is its `timestamp` when it is published, and the instant that a hard
  /// call judges at; absent: the Checker's clock. A hard call refuses what is over 10 s away from
  /// Redis' clock (kClock). So leave it out of a kRecord that follows a reservation: the event gets
  /// the reservation's time.
  std::optional<Instant> at = {};
  /// The token of the check that has let it through (CheckResult::token). A shared note needs it; a
  /// hard call whose check has kept the record takes one exchange with Redis instead of two, if
  /// nothing was written since.
  CheckToken after = {};
};

/// Who counts an impression that Checker::note_shown() tells of.
enum class Note : std::uint8_t {
  kHere,        ///< this process
  kEverywhere,  ///< all servers: a shared note
};

}  // namespace fcap
