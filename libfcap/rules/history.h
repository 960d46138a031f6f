#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <fcap/rule.h>

#include "ledger/ledger.h"
#include "rules/compiled_rules.h"

namespace fcap::rules {

/// Instants are taken into this range, so that adding a window to one never overflows.
inline constexpr std::int64_t kInstantMsMax = std::int64_t{1} << 60;

[[nodiscard]] constexpr std::int64_t bounded_ms(Instant instant) noexcept {
  const std::int64_t ms = to_ms(instant);
  return ms > kInstantMsMax ? kInstantMsMax : (ms < -kInstantMsMax ? -kInstantMsMax : ms);
}

/// A judgement of all rules of one target at one instant.
struct Judgement {
  const CompiledRule* rule = nullptr;  ///< the obstacle that clears last; null: none
  std::int64_t clears_ms = 0;          ///< when it clears; kNever: never
  std::uint32_t count = 0;             ///< its count
  bool shadow_blocks = false;
  bool complete = true;
};

/// The times of one target and type, ascending; or in several ascending pieces.
struct Timeline {
  std::span<const Instant> sorted;  ///< all of them; empty when they lie in pieces
  std::uint32_t count = 0;
  std::uint32_t first_piece = kNone;
  std::uint32_t target = kNone;  ///< the gathered target that it belongs to
  EventType type = EventType::kImpression;
};

/// What belongs to one advertiser, group, creative, or to the whole user, in one check.
struct GatheredTarget {
  std::uint64_t key = 0;
  const TargetRules* rules = nullptr;  ///< null: only defaults apply
  Scope scope = Scope::kUser;
  bool judged = false;
  std::uint32_t first_piece[kEventTypeCount] = {kNone, kNone, kNone, kNone};
  std::uint32_t last_piece[kEventTypeCount] = {kNone, kNone, kNone, kNone};
  std::uint32_t count[kEventTypeCount] = {};
  std::uint32_t merged_at[kEventTypeCount] = {kNone, kNone, kNone, kNone};
  Judgement judgement;  ///< at the check's `now`, once judged

  /// The hash or index that it was asked for by.
  [[nodiscard]] std::uint64_t id() const noexcept { return key & ((std::uint64_t{1} << 48) - 1); }
};

/// The history of a ledger as its targets see it. A campaign is a run of the ledger; the targets
/// that cut across runs are gathered once a check, by reference, and only those asked for. Keeps
/// its buffers from check to check.
class History {
 public:
  /// Begins a check. Both must outlive it.
  void begin(const CompiledRules& rules, const ledger::Ledger& ledger) noexcept;

  /// Asks for a target, and says under which index it will be found.
  std::uint32_t ask(Scope scope, std::uint64_t id, const TargetRules* rules);

  /// Gathers what was asked for. Called once, after the last ask().
  void gather();

  [[nodiscard]] GatheredTarget& target(std::uint32_t index) noexcept { return targets_[index]; }

  /// Where a campaign's runs begin, for timeline_of_campaign().
  [[nodiscard]] std::uint32_t first_run(std::uint64_t campaign) const noexcept;
  [[nodiscard]] Timeline timeline_of_campaign(std::uint64_t campaign, std::uint32_t first_run,
                                              EventType type) const noexcept;
  [[nodiscard]] Timeline timeline_of_target(std::uint32_t index, EventType type) const noexcept;

  /// How many are at or after an instant.
  [[nodiscard]] std::uint32_t count_since(const Timeline& timeline,
                                          std::int64_t from_ms) const noexcept;
  /// count_since() >= limit, without counting further.
  [[nodiscard]] bool at_least(const Timeline& timeline, std::uint32_t limit,
                              std::int64_t from_ms) const noexcept;
  /// The time of the k-th newest; k is from 1 to the timeline's count.
  [[nodiscard]] std::int64_t kth_newest_ms(const Timeline& timeline, std::uint32_t k);
  /// All times, ascending; merges the pieces the first time. Valid until the next call.
  [[nodiscard]] std::span<const Instant> sorted(const Timeline& timeline);

 private:
  struct Piece {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t next = kNone;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t stamp = 0;
    std::uint32_t target = 0;
  };

  static std::uint64_t key_of(Scope scope, std::uint64_t id) noexcept;
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const noexcept;
  [[nodiscard]] std::uint32_t find(Scope scope, std::uint64_t id) const noexcept;
  void grow();
  void attach(GatheredTarget& target, EventType type, std::uint32_t begin, std::uint32_t end);
  void gather_runs();
  void gather_creatives();

  const CompiledRules* rules_ = nullptr;
  const ledger::Ledger* ledger_ = nullptr;
  std::vector<GatheredTarget> targets_;
  std::size_t target_count_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::uint32_t stamp_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Instant> merged_;
  std::vector<Instant> selection_;
  bool asked_user_ = false;
  bool asked_catalog_ = false;
  bool asked_creatives_ = false;
};

}  // namespace fcap::rules
