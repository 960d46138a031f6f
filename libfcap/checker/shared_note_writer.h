#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>

#include <fcap/checker_stats.h>
#include <fcap/verdict.h>

#include "checker/parts.h"
#include "checker/seen_record.h"
#include "ledger/ledger.h"

namespace fcap::checker {

/// Shared notes: reservation frames that are appended to a user's record without waiting, so that
/// other servers' next reads have them.
///
/// Thread safety: all functions from any thread. None throws or blocks.
class SharedNoteWriter {
 public:
  /// Throws std::bad_alloc.
  explicit SharedNoteWriter(SharedParts parts);

  /// Tells other servers of impressions that are about to be shown, all in one write. Does nothing
  /// but count where that is not allowed, or where the record that the check has seen has no room.
  /// True: sent.
  bool share(std::string_view user, std::span<const ledger::Entry> shown,
             const SeenRecord& seen) noexcept;
  /// Takes one back.
  void take_back(std::string_view user, const ledger::Entry& shown) noexcept;

  void add_stats(CheckerStats& stats) const noexcept;

 private:
  class NoteWrite;

  [[nodiscard]] CheckerCounter refused(const SeenRecord& seen, const WriteTerms& terms, Instant now,
                                       std::size_t count) const noexcept;
  void send(std::string_view user, const std::string& frames, Instant now);

  SharedParts parts_;
  // Writes that failed. They may outlive the Checker.
  std::shared_ptr<std::atomic<std::uint64_t>> failures_;
};

}  // namespace fcap::checker
