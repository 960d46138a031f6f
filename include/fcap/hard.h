#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fcap/impression.h>
#include <fcap/reason.h>
#include <fcap/rule_set.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// What a hard call (Checker::hard()) does.
enum class HardCall : std::uint8_t {
  /// Takes a place under every rule for an impression that is about to be shown: until it is
  /// confirmed by the event of this id, or released, or its life is over. Calling again with the
  /// same id gives the same answer, and the first expiry; with another creative it answers
  /// kInvalid, as the first one may have been shown.
  kReserve,
  /// Gives up a reservation or shared note whose impression will not be shown, whatever its
  /// creative. The event id cannot be reserved again within a day. An event of this id that arrives
  /// all the same counts. Takes one exchange, without a read. Only `deadline` is used of the
  /// options, and neither token nor `at` of the impression. Allowed: it is released, or there was
  /// nothing to release.
  kRelease,
  /// kReserve for an impression that will be shown for certain: the record gets its event at once,
  /// with the reservation's time if there is one. What is refused is not recorded; what has been
  /// shown is, with HardOptions::shown. Unless also published, it is lost with Redis' data.
  kRecord,
};

/// One hard call: what to do with which impression. There is no default for what to do.
struct HardRequest {
  HardRequest(HardCall what, const Impression& which) noexcept : call(what), impression(which) {}

  HardCall call;
  Impression impression;
};

/// What a hard call, or a batch of them, may set. The views must outlive the call, or the start of
/// an asynchronous one.
struct HardOptions {
  /// From the call to the answer, repetitions after conflicts included; absent: the Checker's. As
  /// CheckOptions::deadline.
  std::optional<std::chrono::microseconds> deadline = {};
  /// Segments that the caller knows the user to be in, besides the stored ones.
  std::span<const std::string_view> segments = {};
  /// How long a reservation lasts; absent, and at most: what the updater's reservation.max_life
  /// allows (15 minutes by default).
  std::optional<std::chrono::milliseconds> life = {};
  /// What kReserve and kRecord answer when it cannot be decided: false refuses (fail closed), true
  /// allows, without anything being reserved; what is kCapped, kReleased or kInvalid is never
  /// allowed.
  bool allow_undecided = false;
  /// With kRecord: the impression has been shown, so it is recorded whatever the rules say, also if
  /// its id was released or is reserved with another creative. Only kInvalid and what keeps a
  /// record from being read or written refuses it. An impression that is recorded like this may
  /// exceed a limit.
  bool shown = false;
};

/// What a hard call gives.
struct HardResult {
  /// The impression may be shown (kRelease: the reservation is gone).
  bool allowed = false;
  /// The write was sent, and its answer was not received: it may have happened. The call may be
  /// repeated with the same event id, and then says what is there.
  bool unknown = false;
  Reason reason = Reason::kUnavailable;
  /// With kDone and kRepeated, the reservation's or event's time. The impression must be published
  /// with this `timestamp`.
  Instant time = {};
  /// Until when an unconfirmed reservation counts; none where an event is recorded.
  std::optional<Instant> expires = {};
  /// With kCapped and kIncomplete, the verdict, with the rule, its count and limit, and the
  /// earliest instant at which the candidate may pass.
  Verdict verdict = {};
  /// The rule set that was applied; keeps the verdict's rule id alive.
  std::shared_ptr<const RuleSet> rules = {};
};

}  // namespace fcap
