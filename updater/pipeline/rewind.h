#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "updater/marks/gaps.h"

namespace fcap::updater {

/// Where a partition's reading begins, and what must be read again. Pure: all I/O is its caller's.
///
/// The mark in Redis says: everything below it that is in none of its gaps is in this Redis. It is
/// written only for what was acknowledged, only over the mark that was there before
/// (compare-and-set), and never expires before the events below it do. So a mark that is not the
/// one written last shows that Redis lost something, or that somebody else reads the partition too;
/// both are cured by reading again what it does not claim.

/// What a mark claims to be in Redis: everything below `position` that is in no gap.
struct Claim {
  std::int64_t position = 0;
  Gaps gaps = {};

  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Where everything is claimed to be there, but for gaps.
[[nodiscard]] std::optional<std::int64_t> position_of(const std::optional<Claim>& claim);
/// What a mark claims, and an offset, for people.
[[nodiscard]] std::string describe(const std::optional<Claim>& claim);
[[nodiscard]] std::string describe(std::optional<std::int64_t> offset);

/// What both claim.
[[nodiscard]] Claim common_claim(const Claim& one, const Claim& other);

/// What is known of a partition's mark when one is read from Redis again.
struct MarkCheck {
  /// The mark as last confirmed; none: there was none.
  std::optional<Claim> confirmed;
  /// The mark of a write whose outcome is unknown.
  std::optional<Claim> attempted;
  /// Connections were lost or made since it was confirmed: what was acknowledged since then may be
  /// on a server that is no longer the master, with no trace of it in the mark.
  bool reconnected = false;
};

struct Rewind {
  enum class To : std::uint8_t {
    kNowhere,         ///< nothing is in doubt
    kClaim,           ///< everything that `certain` does not claim may be missing
    kRetentionStart,  ///< everything that still counts may be missing
  };
  To to = To::kNowhere;
  Claim certain = {};
  /// The mark in Redis claims more than is certain and must be written down.
  bool lower_mark = false;

  friend bool operator==(const Rewind&, const Rewind&) = default;
};

/// `found`: the mark read now; nullopt: Redis has no mark.
[[nodiscard]] Rewind decide_rewind(const MarkCheck& check, const std::optional<Claim>& found);

/// Where a newly assigned partition begins.
struct Start {
  bool retention_start = false;  ///< at the start of retention; `offset` says nothing
  std::int64_t offset = 0;

  friend bool operator==(const Start&, const Start&) = default;
};

/// Kafka's committed offset only ever makes it earlier; a missing mark means an empty Redis. A mark
/// without a committed offset speaks of another log: Kafka deletes a group's offsets with the
/// topic, and another cluster has none. Offsets that expired while the group was away look the
/// same, unless the log is `known`: one of the mark's messages was found in it.
[[nodiscard]] Start decide_start(std::optional<std::int64_t> committed,
                                 std::optional<std::int64_t> mark, bool known = false);

/// The position of the mark to write, given what is acknowledged (`low_water`) and what stands in
/// Redis. A mark that is already ahead stays (a restart below it reads again what Redis has),
/// unless it may fall.
[[nodiscard]] std::int64_t mark_to_write(std::int64_t low_water, std::optional<std::int64_t> mark,
                                         bool may_fall);

/// What is read again at once, before any later message, and what becomes a gap.
struct RecoveryPlan {
  std::int64_t read_from = 0;
  Gaps gaps = {};
};

/// `certain` is what is in Redis for certain, `done` the offset below which everything was settled
/// once (written, or put aside as a dead letter), `next` the first that was not read yet. A stretch
/// of less than `gap_min` offsets is read in line; none: every stretch is, however long.
[[nodiscard]] RecoveryPlan plan_recovery(const Claim& certain, std::int64_t done, std::int64_t next,
                                         std::optional<std::int64_t> gap_min);

}  // namespace fcap::updater
