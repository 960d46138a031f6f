#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fcap/rule.h>

#include "ledger/ledger.h"
#include "rules/compiled_rules.h"
#include "rules/reservation_state.h"

namespace fcap::rules {

/// Instants are taken into this range, so that adding a window to one never overflows.
inline constexpr std::int64_t kInstantMsMax = std::int64_t{1} << 60;

[[nodiscard]] constexpr std::int64_t bounded_ms(Instant instant) noexcept {
  const std::int64_t ms = to_ms(instant);
  return ms > kInstantMsMax ? kInstantMsMax : (ms < -kInstantMsMax ? -kInstantMsMax : ms);
}

/// An obstacle that stands until `until_ms` whatever is added to the history.
struct CertainObstacle {
  const CompiledRule* rule = nullptr;  ///< null: there is none
  std::int64_t until_ms = 0;
  std::uint32_t count = 0;
};

/// A judgement of all rules of one target at one instant.
struct TargetJudgement {
  const CompiledRule* rule = nullptr;  ///< the obstacle that clears last; null: none
  std::int64_t clears_ms = 0;          ///< when it clears; kNever: never
  std::uint32_t count = 0;             ///< its count
  std::int64_t since_ms = 0;           ///< since when entries count for it
  /// The shadow rule with the smallest id of those that stand in the way; null: none.
  const CompiledRule* shadow = nullptr;
  bool complete = true;
  CertainObstacle certain;  ///< of those there are, the one that stands longest
};

/// When a target passes, as far as it has been worked out: no enforced rule lets it pass anywhere
/// in [from_ms, passes_ms), and at passes_ms all of them do. Candidates ask for the same few
/// instants.
class PassingSpans {
 public:
  void clear() noexcept { count_ = 0; }
  /// When a target passes first, at `at_ms` or later; none: not known.
  [[nodiscard]] std::optional<std::int64_t> passes_at(std::int64_t at_ms) const noexcept {
    for (std::size_t i = 0; i < std::min<std::size_t>(count_, kSpans); ++i) {
      if (spans_[i].from_ms <= at_ms && at_ms <= spans_[i].passes_ms) return spans_[i].passes_ms;
    }
    return std::nullopt;
  }
  void add(std::int64_t from_ms, std::int64_t passes_ms) noexcept {
    spans_[count_++ % kSpans] = {from_ms, passes_ms};
  }

 private:
  static constexpr std::size_t kSpans = 2;
  struct PassingSpan {
    std::int64_t from_ms;
    std::int64_t passes_ms;
  };
  std::uint32_t count_ = 0;
  PassingSpan spans_[kSpans];  ///< the first `count_` are valid; the oldest one is replaced
};

/// A reservation that is live at a check's instant, as one of its targets sees it.
struct Reserved {
  std::uint64_t key = 0;  ///< of target and type; see History::reserved()
  std::int64_t time_ms = 0;
  std::int64_t expires_ms = 0;
};

/// The times of one target and type, ascending; or in several ascending pieces.
struct Timeline {
  /// "All of the ledger's runs", instead of a first piece.
  static constexpr std::uint32_t kEveryRun = kNone - 1;

  std::span<const Instant> sorted;  ///< all of them; empty when they lie in pieces
  std::uint32_t count = 0;
  std::uint32_t first_piece = kNone;  ///< kNone: `sorted` has them
  std::uint32_t target = kNone;       ///< the gathered target that it belongs to
  EventType type = EventType::kImpression;
  std::span<const Reserved> reserved;  ///< live reservations, in no order

  /// Leaves out what is only reserved.
  [[nodiscard]] Timeline confirmed() const noexcept {
    Timeline timeline = *this;
    timeline.reserved = {};
    return timeline;
  }
};

/// What belongs to one advertiser, group, creative, or to the whole user, in one check. The arrays
/// are by event type; reset() leaves alone what is not read before it is written, because a check
/// may have a thousand of these.
struct GatheredTarget {
  std::uint64_t key = 0;
  const TargetRules* rules = nullptr;  ///< null: only defaults apply
  Scope scope = Scope::kUser;
  bool judged = false;
  bool plainly_clear = false;  ///< once known; see Check::is_plainly_clear()
  std::uint8_t merged = 0;     ///< a bit for each type whose pieces have been merged
  std::uint32_t count[kEventTypeCount] = {};
  std::uint32_t first_piece[kEventTypeCount] = {};  ///< valid where count is not 0
  std::uint32_t last_piece[kEventTypeCount] = {};   ///< valid where count is not 0
  std::uint32_t merged_at[kEventTypeCount] = {};    ///< valid where merged
  TargetJudgement judgement;                        ///< at the check's `now`, once judged
  PassingSpans passes;

  void reset(std::uint64_t new_key, Scope new_scope, const TargetRules* new_rules) noexcept {
    key = new_key;
    rules = new_rules;
    scope = new_scope;
    judged = false;
    plainly_clear = false;
    merged = 0;
    passes.clear();
    for (std::uint32_t& of_type : count) of_type = 0;
  }

  [[nodiscard]] bool is_merged(EventType type) const noexcept {
    return ((merged >> static_cast<unsigned>(type)) & 1U) != 0;
  }

  /// The hash or index that it was asked for by.
  [[nodiscard]] std::uint64_t id() const noexcept { return key & ((std::uint64_t{1} << 48) - 1); }
};

/// The history of a ledger as its targets see it. A campaign is a run of the ledger; the targets
/// that cut across runs are gathered once per check, by reference, and only those asked for. Keeps
/// its buffers from check to check.
class History {
 public:
  /// Begins a check. Both must outlive it.
  void begin(const CompiledRules& rules, const ledger::Ledger& ledger) noexcept;

  /// Asks for a target, and says under which index it will be found.
  std::uint32_t ask(Scope scope, std::uint64_t id, const TargetRules* rules);

  /// Gathers what was asked for. Called once, after the last ask(). `campaigns` is how many calls
  /// of first_run() will follow, more or less. Only reservations that are live at `now_ms` are
  /// gathered.
  void gather(std::size_t campaigns, std::int64_t now_ms);

  [[nodiscard]] GatheredTarget& target(std::uint32_t index) noexcept { return targets_[index]; }
  [[nodiscard]] const GatheredTarget& target(std::uint32_t index) const noexcept {
    return targets_[index];
  }

  /// Where a campaign's runs begin, for timeline_of_campaign().
  [[nodiscard]] std::uint32_t first_run(std::uint64_t campaign) const noexcept;
  [[nodiscard]] Timeline timeline_of_campaign(std::uint64_t campaign, std::uint32_t first_run,
                                              EventType type) const noexcept;
  [[nodiscard]] Timeline timeline_of_target(std::uint32_t index, EventType type) const noexcept;

  /// Whether any reservation is live.
  [[nodiscard]] bool has_reserved() const noexcept { return reserved_marks_ != 0; }
  /// Whether one may be live for a target: of a campaign by its hash, of others by
  /// GatheredTarget::key. False is certain.
  [[nodiscard]] bool may_be_reserved(std::uint64_t target_key) const noexcept {
    return ((reserved_marks_ >> (target_key % 64)) & 1U) != 0;
  }
  /// The live reservations of a target, named likewise, and type.
  [[nodiscard]] std::span<const Reserved> reserved(std::uint64_t target_key,
                                                   EventType type) const noexcept;

  /// How many are at or after an instant, reservations not among them.
  [[nodiscard]] std::uint32_t count_since(const Timeline& timeline,
                                          std::int64_t from_ms) const noexcept;
  /// count_since() >= limit, without counting further.
  [[nodiscard]] bool at_least(const Timeline& timeline, std::uint32_t limit,
                              std::int64_t from_ms) const noexcept;
  /// The time of the k-th newest; k is from 1 to the timeline's count.
  [[nodiscard]] std::int64_t kth_newest_ms(const Timeline& timeline, std::uint32_t k);
  /// All times, ascending, without reservations; merges the pieces the first time. Valid until the
  /// next call.
  [[nodiscard]] std::span<const Instant> sorted(const Timeline& timeline);

 private:
  struct Piece {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t next = kNone;
  };
  struct RunSlot {
    std::uint32_t round = 0;
    std::uint32_t run = 0;
  };
  struct TargetSlot {
    std::uint64_t key = 0;
    std::uint32_t round = 0;
    std::uint32_t target = 0;
  };

  static std::uint64_t key_of(Scope scope, std::uint64_t id) noexcept;
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const noexcept;
  [[nodiscard]] std::uint32_t find(Scope scope, std::uint64_t id) const noexcept;
  void grow();
  template <typename Visit>
  void for_each_piece(const Timeline& timeline, Visit&& visit) const;
  void index_runs();
  [[nodiscard]] std::uint32_t search_run(std::uint64_t campaign) const noexcept;
  void attach(GatheredTarget& target, EventType type, std::uint32_t begin, std::uint32_t end);
  void gather_runs();
  void gather_creatives();
  void find_live(std::int64_t now_ms);
  void gather_reserved(std::int64_t now_ms);
  void add_reserved(std::uint64_t target_key, const ledger::Reservation& reservation);
  void add_reserved_of_targets(const ledger::Reservation& reservation);

  const CompiledRules* rules_ = nullptr;
  const ledger::Ledger* ledger_ = nullptr;
  std::vector<GatheredTarget> targets_;
  std::size_t target_count_ = 0;
  std::vector<TargetSlot> slots_ = std::vector<TargetSlot>(64);
  std::uint32_t round_ = 0;
  std::vector<Piece> pieces_;
  std::vector<RunSlot> run_slots_;
  bool runs_are_indexed_ = false;
  std::vector<Instant> merged_;
  std::vector<Instant> selection_;
  std::vector<const ledger::Reservation*> live_;
  std::vector<Reserved> reserved_;    ///< by key
  std::uint64_t reserved_marks_ = 0;  ///< a bit for each target_key % 64 that has any; 0: none
  bool asked_user_ = false;
  bool asked_catalog_ = false;
  bool asked_creatives_ = false;
};

inline std::uint32_t History::first_run(std::uint64_t campaign) const noexcept {
  if (!runs_are_indexed_) return search_run(campaign);
  const ledger::Run* runs = ledger_->runs().data();
  const std::size_t mask = run_slots_.size() - 1;
  for (std::size_t at = campaign & mask; run_slots_[at].round == round_; at = (at + 1) & mask) {
    if (runs[run_slots_[at].run].campaign == campaign) return run_slots_[at].run;
  }
  return static_cast<std::uint32_t>(ledger_->runs().size());
}

inline Timeline History::timeline_of_campaign(std::uint64_t campaign, std::uint32_t first_run,
                                              EventType type) const noexcept {
  const std::span<const ledger::Run> runs = ledger_->runs();
  Timeline timeline;
  timeline.type = type;
  for (std::uint32_t i = first_run; i < runs.size() && runs[i].campaign == campaign; ++i) {
    if (runs[i].type != type) continue;
    timeline.count = runs[i].end - runs[i].begin;
    timeline.sorted = ledger_->times().subspan(runs[i].begin, timeline.count);
    break;
  }
  return timeline;
}

inline bool History::at_least(const Timeline& timeline, std::uint32_t limit,
                              std::int64_t from_ms) const noexcept {
  if (limit == 0) return true;
  if (timeline.count < limit) return false;
  if (timeline.first_piece == kNone) {
    return to_ms(timeline.sorted[timeline.count - limit]) >= from_ms;
  }
  return count_since(timeline, from_ms) >= limit;
}

}  // namespace fcap::rules
