#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <fcap/store.h>

#include "updater/marks/gaps.h"
#include "updater/marks/log_watch.h"
#include "updater/marks/mark_value.h"
#include "updater/pipeline/mark.h"
#include "updater/pipeline/partition.h"
#include "updater/pipeline/rewind.h"

namespace fcap::updater {

/// A partition's one mark, on a server or behind Sentinels, and what may be missing of it.
struct MarkedPartition {
  using Clock = std::chrono::steady_clock;

  /// `in_line`: everything that is missing is read in line, the gaps of a mark as well.
  MarkedPartition(Store& store, std::string key, bool in_line)
      : mark(std::make_unique<Mark>(store, std::move(key))), reads_in_line(in_line) {}

  std::unique_ptr<Mark> mark;
  bool reads_in_line;
  /// Offsets that may be missing, below sure_from. Above it are only those that a mark called
  /// missing; they are read in line.
  Gaps gaps = {};
  std::int64_t sure_from = 0;         ///< offsets done from here on are in this data set
  std::uint64_t gaps_generation = 0;  ///< GapPiece::gaps_generation
  bool reconnected = false;           ///< kChecking: since the mark was confirmed
  /// The mark claims what may have been lost, or is about another log. Until one is written that
  /// claims less, this is the only sign of it.
  bool may_fall = false;
  std::uint64_t epoch = 0;            ///< of the connections when the mark was compared
  std::uint64_t operation_epoch = 0;  ///< when the operation under way was started
  Clock::time_point due{};            ///< the next write of the mark
  Clock::time_point write_begun{};    ///< the last one
  Clock::time_point compared{};       ///< as MarkNews::compared
  bool no_mark_said = false;          ///< that something else stands at the mark's key
  std::optional<LogWatch::StartedLook> look = {};  ///< whether the mark found is about this log
  std::optional<LogVerdict> verdict = {};          ///< what that has shown

  /// What a mark claims to be in Redis.
  [[nodiscard]] std::optional<Claim> claim_of(const Mark::Value& value) const;
  [[nodiscard]] std::optional<Claim> claimed() const { return claim_of(mark->confirmed()); }
  /// Whether the mark found is one that this process has written, or may have.
  [[nodiscard]] bool found_ours() const;

  /// Reading has begun, or begun again, at `offset`.
  void reading_begins(std::int64_t offset, std::uint64_t new_gaps_generation);
  /// What was done since is no longer missing.
  void count_done(const Partition& p);
  /// Takes over what the mark that was found, which is about this log, says of it.
  void know_by_found(Partition& p, std::int64_t start) const;

  /// Whether the confirmed mark names all gaps below it.
  [[nodiscard]] bool mark_says_all() const;
  /// Whether a mark of this position would say something else than the confirmed one.
  [[nodiscard]] bool mark_moved(std::int64_t position) const;
  [[nodiscard]] MarkValue value_of_mark(Partition& p, std::int64_t position) const;

 private:
  [[nodiscard]] Gaps gaps_to_mark(std::int64_t position) const;
};

}  // namespace fcap::updater
