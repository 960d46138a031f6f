#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/check_token.h>
#include <fcap/reason.h>
#include <fcap/subject.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

namespace fcap {

/// What becomes of the picks of a page (Checker::pick()).
enum class Promise : std::uint8_t {
  /// They are noted and shared, as by note_shown() with Note::kEverywhere, all of them in one write
  /// for which nobody waits. A page takes one read, as a check does. It fails open
  /// (CheckerOptions::fail_open): without the history it has picks all the same, but
  /// not where memory has run out.
  kShared,
  /// They are reserved, as by HardCall::kReserve, in one exchange, or none of them. A page fails
  /// closed: what cannot be decided has no picks.
  kReserved,
};

/// What a page, or a batch of them, may set. The views must outlive the call, or the start of an
/// asynchronous one.
struct PageOptions {
  /// From the call to the answer, repetitions after conflicts included; absent: the Checker's. As
  /// CheckOptions::deadline.
  std::optional<std::chrono::microseconds> deadline = {};
  /// The instant to judge at, which becomes the picks' time; absent: the Checker's clock.
  std::optional<Instant> now = {};
  /// Segments that the caller knows the user to be in, besides the stored ones.
  std::span<const std::string_view> segments = {};
  /// With kReserved, as HardOptions::life.
  std::optional<std::chrono::milliseconds> life = {};
};

/// One page. The views must outlive the call, or the start of an asynchronous one.
///
/// What a page costs beside its exchanges: candidates are judged in order of rank, a group at a
/// time, each group twice as many as the one before, and one candidate again after each pick. So a
/// page judges each candidate about twice at most, and walks through the user's record about
/// log2(candidates) times per slot. 1,000 candidates of which none passes cost about twice a
/// check() of them.
struct PageRequest {
  PageRequest(Promise what, const Subject& who, std::span<const Candidate> candidates,
              std::span<const std::string_view> ids, CheckToken seen = {}) noexcept
      : promise(what), subject(who), ranked(candidates), event_ids(ids), after(std::move(seen)) {}

  Promise promise;
  Subject subject;
  std::span<const Candidate> ranked;
  /// One per slot: at most 64, all different, each as Impression::event_id.
  std::span<const std::string_view> event_ids;
  /// With kReserved, as Impression::after.
  CheckToken after;
};

/// What a page gives.
struct PagePicks {
  struct Pick {
    /// An index into the ranked candidates; none: nothing more may be shown in this slot.
    std::optional<std::size_t> candidate = {};
    /// With a candidate: the impression must be published with this `timestamp`.
    Instant time = {};
    /// With kReserved, as HardResult::expires.
    std::optional<Instant> expires = {};
    /// With kReserved: the slot's event id belongs to an impression, reserved or recorded, of a
    /// campaign or creative that is not among the candidates. That stays the slot's pick, with this
    /// time and expiry, and `candidate` is empty. Another impression needs another event id.
    bool held_by_other = false;
  };
  /// One per event id, in their order. Out of memory, the list may be empty.
  std::vector<Pick> picks;
  /// With kReserved, as HardResult::unknown. No pick is named then; a repetition names them.
  bool unknown = false;
  /// kDone: some slot got a pick by this call. kRepeated: the page has no slots, or the record had
  /// a pick for every slot of a reserved page already (`held_by_other`, or the note of a shared
  /// page, counts as one). kCapped: no candidate passes, or none was given.
  ///
  /// Otherwise a shared page was picked without the history, for this reason; a candidate with an
  /// id outside its range passes there where the Checker fails open. For a reserved page it says
  /// why no (further) slot could be filled, and nothing was written; picks that the record held
  /// already are named all the same. It is kTimeout, too, if the deadline passed between two picks.
  Reason reason = Reason::kUnavailable;
  /// With kShared, as Verdict::stale.
  bool stale = false;
};

}  // namespace fcap
