#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/hard.h>
#include <fcap/page.h>
#include <fcap/store.h>

#include "checker/parts.h"
#include "checker/question.h"
#include "checker/scratch_pool.h"
#include "rules/page_decision.h"

namespace fcap::checker {

/// What a hard call asks for. Views of the caller's.
struct ReserveAsk {
  enum class Kind : std::uint8_t {
    kReserve,  ///< writes reservations
    kRecord,   ///< writes entries
    kRelease,  ///< of one candidate and event id
    kPick,     ///< writes the reservations of a page
  };

  Kind kind = Kind::kPick;
  std::string_view user;
  std::span<const Candidate> ranked;
  std::span<const std::string_view> event_ids = {};  ///< one per slot
  const CheckToken* after = nullptr;                 ///< null: none
  std::optional<Instant> now = {};
  std::optional<std::chrono::microseconds> deadline = {};
  std::span<const std::string_view> segments = {};
  std::optional<std::chrono::milliseconds> life = {};
  bool allow_undecided = false;
  bool is_shown = false;  ///< HardOptions::shown

  [[nodiscard]] static ReserveAsk of(const HardRequest& request,
                                     const HardOptions& options) noexcept;
  [[nodiscard]] static ReserveAsk of(const PageRequest& page, const PageOptions& options) noexcept;

  /// More slots are invalid.
  static constexpr std::size_t kSlotsMax = 64;
  /// Whether there are not too many event ids, and none is empty, too long or there twice.
  [[nodiscard]] bool has_valid_ids() const noexcept;
};

/// One hard call or reserved page from its question to its result: says what to ask the store
/// next, and is told what it answers. Does no I/O, so that the blocking and
/// the asynchronous form share it.
///
/// A decision to write may rest on an old record, because the exchange compares the whole record. A
/// decision not to write rests on one that was read for this call.
///
/// Thread safety: none.
class ReserveRun {
 public:
  enum class ReserveStep : std::uint8_t {
    kRead,      ///< Store::get() of key()
    kExchange,  ///< Store::compare_and_set() of change()
    kAppend,    ///< Store::append_note() of change().desired
    kDone,
  };

  /// Notes what every answer depends on, so that a call that fails before begin() is answered
  /// correctly, too. Keeps no view of the ask.
  ReserveRun(const SharedParts& parts, const ReserveAsk& ask) noexcept
      : parts_(parts),
        kind_(ask.kind),
        allow_undecided_(ask.allow_undecided),
        is_shown_(ask.kind == ReserveAsk::Kind::kRecord && ask.is_shown),
        slot_count_(ask.event_ids.size()) {}

  /// Begins with the ask that it was made for, whose views may be others; asks the store what may
  /// be written, so the caller counts itself in (CountedCall). The ask's user and segments stay
  /// referenced, its other views do not. Throws std::bad_alloc and what the host's clock throws;
  /// then only fail() may be called. A page is decided no longer than until the deadline.
  [[nodiscard]] ReserveStep begin(const ReserveAsk& ask, Store::Deadline deadline);
  /// What to do after a step, by how it ended. Throws std::bad_alloc; then only fail() may be
  /// called.
  [[nodiscard]] ReserveStep next(ReserveStep done, const StoreOutcome& outcome);
  /// Ends it while a step that was started has not been answered.
  void cut_off(ReserveStep step, Reason reason) noexcept;
  /// Ends it, whatever it waits for; also instead of begin().
  void fail(Reason reason) noexcept;

  /// Starts a step other than kDone.
  void start(ReserveStep step, Store& store, Store::Deadline deadline,
             StoreCompletion& done) const noexcept;
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  /// The result for one candidate and event id.
  [[nodiscard]] HardResult result() const;
  /// Without memory for the list: kOverloaded and `unknown`, and no picks. A repetition names them.
  [[nodiscard]] PagePicks picks() const noexcept;

 private:
  /// kPassed: go on.
  [[nodiscard]] Reason reason_after(StoreCode code) const noexcept;
  [[nodiscard]] ReserveStep on_read(StoreCode code, std::string_view record);
  [[nodiscard]] ReserveStep on_exchange(StoreCode code) noexcept;
  [[nodiscard]] ReserveStep on_append(const StoreOutcome& outcome) noexcept;

  struct PageSlot {
    std::uint32_t fingerprint = 0;
    std::optional<std::size_t> candidate = {};
    Instant time = {};
    std::optional<Instant> expires = {};
    bool held_by_other = false;  ///< as PagePicks::Pick::held_by_other
    bool is_new = false;         ///< this call writes it
  };

  [[nodiscard]] Reason prepare(const ReserveAsk& ask);
  [[nodiscard]] ReserveStep begin_release(const ReserveAsk& ask);
  /// `changed`: the record is not the one that the latest decision was made on.
  [[nodiscard]] ReserveStep decide(bool is_fresh, bool changed);
  [[nodiscard]] bool decide_on(Scratch& scratch);
  void decide_one(Scratch& scratch);
  void decide_picks(Scratch& scratch);
  void fill(PageSlot& slot, const rules::SlotPick& pick);
  [[nodiscard]] Reason refuse_one_more() const noexcept;
  void write(const rules::CandidateKey& candidate, const PageSlot& slot);
  [[nodiscard]] ReserveStep finish(Reason reason) noexcept;

  SharedParts parts_;
  const ReserveAsk::Kind kind_;
  const bool allow_undecided_;
  const bool is_shown_;
  const std::size_t slot_count_;  // as asked for; without memory there may be fewer slots_
  std::string key_;
  Question question_;
  WriteTerms terms_;
  std::chrono::milliseconds life_{0};
  Store::Deadline deadline_;
  std::vector<PageSlot> slots_;
  std::vector<std::uint32_t> fingerprints_;

  std::optional<std::string> record_;  // nullopt: the user has none
  std::string desired_;
  std::size_t reservations_ = 0;
  bool wrote_ = false;                   // the decision at hand
  Reason stopped_by_ = Reason::kPassed;  // why slots are empty, if any is
  Verdict refusal_;

  int tries_ = 0;
  bool maybe_written_ = false;
  bool unknown_ = false;
  Reason reason_ = Reason::kUnavailable;
};

/// The frame that releases the reservation of an event id.
void append_release(const ledger::Entry& event, std::string& out);

}  // namespace fcap::checker
