#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/rule_set.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// Why a hard call (Checker::reserve(), record(), pick_and_reserve(), release()) ended as it did.
/// After all but the first two nothing was written, unless the result says `unknown`.
enum class ReserveReason : std::uint8_t {
  kDone,      ///< written by this call
  kRepeated,  ///< an earlier call with this event id, or the event itself, was there already

  // --- The record says no.

  kCapped,    ///< ReserveResult::verdict names the rule
  kReleased,  ///< this event id was released, and cannot be reserved again within a day

  // --- It was not decided.

  kIncomplete,  ///< a rule reaches back to where the record was trimmed, or where events are being
                ///< read again after a loss; or an erasure reaches minutes ahead of now
  kTooMany,     ///< the user has 64 live reservations
  kTooLong,   ///< the user's record has no room: reservations may fill three quarters of the bound
  kNoConfig,  ///< the updater's configuration is not in Redis, which has lost its data, or no
              ///< updater has been there; or it has a format that this release does not know
  kClock,     ///< this machine's clock is more than 10 s away from Redis', or that is not known
  kConflict,  ///< each time, another writer had changed the record since it was read
  kNoUser,    ///< the user id is empty or configured as null
  kNoRules,   ///< no rule set has been loaded yet
  kTimeout,   ///< the store did not answer before the deadline
  kUnavailable,  ///< the store cannot be reached, or has not been yet, or answered with an error
  kBreakerOpen,  ///< the store failed repeatedly and is being left alone
  kOverloaded,   ///< a bounded queue is full, or memory has run out
  kUndecodable,  ///< the user's record is not one that this version can read
  kForked,       ///< this process is a fork of the one that made the Checker
  kShutdown,     ///< the Checker is being destroyed
  kReentrant,    ///< a blocking call from inside a callback
  kInvalid,  ///< an argument is outside its range: an id over 256 bytes or empty, two equal event
             ///< ids, more than 64 of them, or a life that is not above 0; or the event id belongs
             ///< to another creative of the campaign
};

inline constexpr std::size_t kReserveReasonCount =
    static_cast<std::size_t>(ReserveReason::kInvalid) + 1;

/// A word for a reason, as used in JSON and metrics: "done", "capped", "no_config"…
[[nodiscard]] FCAP_EXPORT std::string_view to_string(ReserveReason reason) noexcept;

/// A sentence for a reason, which names the setting to change where there is one.
[[nodiscard]] FCAP_EXPORT std::string_view describe(ReserveReason reason) noexcept;

/// What one hard call may set. The views must outlive the call, or the start of an asynchronous
/// one.
struct ReserveOptions {
  /// From the call to the answer, repetitions after conflicts included; absent: the Checker's. As
  /// CheckOptions::deadline.
  std::optional<std::chrono::microseconds> deadline = {};
  /// The instant to judge at, which becomes the reservation's time; absent: the Checker's clock.
  std::optional<Instant> now = {};
  /// Segments that the caller knows the user to be in, besides the stored ones.
  std::span<const std::string_view> segments = {};
  /// A check of this user with CheckOptions::keep_record: the call begins with the record that it
  /// has read, and so takes one exchange with Redis instead of two, if nothing was written since.
  const CheckResult* after = nullptr;
  /// How long the reservation lasts; absent, and at most: what the updater's reservation.max_life
  /// allows (15 minutes by default).
  std::optional<std::chrono::milliseconds> life = {};
  /// What reserve() and record() answer when it cannot be decided: false refuses (fail closed),
  /// true allows, without anything being reserved; what is kCapped, kReleased or kInvalid is never
  /// allowed. pick_and_reserve() names no pick then.
  bool allow_undecided = false;
  /// Of record(), and ignored by the other calls: the impression has been shown, so it is recorded
  /// whatever the rules say, also if its id was released or is reserved with another creative. Only
  /// kInvalid and what keeps a record from being read or written refuses it. An impression that is
  /// recorded like this may exceed a limit.
  bool shown = false;
};

/// One impression of reserve_batch(), record_batch() or release_batch(). The views must outlive the
/// call.
struct ReserveRequest {
  std::string_view user;
  Candidate candidate;
  std::string_view event_id;
  /// As ReserveOptions::after, for this user.
  const CheckResult* after = nullptr;
};

/// One page of pick_and_reserve_batch() or pick_and_share_batch(). The views must outlive the call.
///
/// What a page costs beside its exchanges: candidates are judged in order of rank, a group at a
/// time, each group twice as many as the one before, and one candidate again after each pick. So a
/// page judges each candidate about twice at most, and walks through the user's record about
/// log2(candidates) times per slot. 1,000 candidates of which none passes cost about twice a
/// check() of them.
struct PageRequest {
  std::string_view user;
  std::span<const Candidate> ranked;
  std::span<const std::string_view> event_ids;  ///< one per slot
  /// As ReserveOptions::after, for this user; pick_and_share_batch() does not use it.
  const CheckResult* after = nullptr;
};

/// What reserve(), record() and release() give.
struct ReserveResult {
  /// The impression may be shown (release(): the reservation is gone).
  bool allowed = false;
  /// The write was sent, and its answer was not received: it may have happened. The call may be
  /// repeated with the same event id, and then says what is there.
  bool unknown = false;
  ReserveReason reason = ReserveReason::kUnavailable;
  /// Of kDone and kRepeated: the reservation's or event's time. The impression must be published
  /// with this `timestamp`.
  Instant time = {};
  /// Until when an unconfirmed reservation counts; none where an event is recorded.
  std::optional<Instant> expires = {};
  /// Of kCapped and kIncomplete: the verdict, with the rule, its count and limit, and the earliest
  /// instant at which the candidate may pass.
  Verdict verdict = {};
  /// The rule set that was applied; keeps the verdict's rule id alive.
  std::shared_ptr<const RuleSet> rules = {};
};

/// What pick_and_reserve() gives.
struct ReservedPicks {
  struct Pick {
    /// An index into the ranked candidates; none: nothing more may be shown in this slot.
    std::optional<std::size_t> candidate = {};
    Instant time = {};                    ///< as ReserveResult::time
    std::optional<Instant> expires = {};  ///< as ReserveResult::expires
    /// The slot's event id belongs to an impression, reserved or recorded, of a campaign or
    /// creative that is not among the candidates. That stays the slot's pick, with this time and
    /// expiry, and `candidate` is empty. Another impression needs another event id.
    bool held_by_other = false;
  };
  /// One per event id, in their order. Out of memory, the list may be empty.
  std::vector<Pick> picks;
  /// As ReserveResult::unknown. No pick is named then; a repetition names them.
  bool unknown = false;
  /// kDone: something was written. kRepeated: all picks were there already, those that are
  /// `held_by_other` included, as also where there are no slots. Otherwise nothing was written: why
  /// no (further) slot could be filled, kCapped if no candidate passes or the list is empty. Picks
  /// that the record held already are named all the same. kTimeout also where the deadline passed
  /// between two picks.
  ReserveReason reason = ReserveReason::kUnavailable;
};

/// Tells other servers of an impression too (Checker::note_shown()).
struct SharedNote {
  /// `after`: CheckResult::seen or PickResult::seen of the check that has let it through.
  /// `shown_at`: the impression's timestamp; absent: the Checker's clock.
  explicit SharedNote(const RecordSeen& after, std::optional<Instant> shown_at = {}) noexcept
      : seen(after), at(shown_at) {}

  RecordSeen seen;
  std::optional<Instant> at;
};

}  // namespace fcap
