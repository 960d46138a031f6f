#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fcap/checker.h>
#include <fcap/store.h>

#include "checker/counters.h"
#include "checker/gate.h"
#include "checker/latency.h"
#include "checker/negative_cache.h"
#include "checker/question.h"
#include "checker/scratch_pool.h"
#include "checker/shown_events.h"
#include "checker/verdicts.h"

namespace fcap::checker {

/// Verdicts that were given without the history, or against what a replica says of it.
struct WithoutHistory {
  std::uint64_t certain = 0;
  std::uint64_t cached = 0;
};

/// Turns a question and the store's answer into verdicts. Adds what the process knows by itself:
/// impressions just shown, and caps that are certain. Does no I/O and has no threads.
///
/// Thread safety: all functions from any thread.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what threads write is aligned
class Judgement {
 public:
  using Clock = std::chrono::steady_clock;

  /// All of them outlive it, but for the store, which outlives the last prepare(). Throws
  /// std::bad_alloc.
  Judgement(const CheckerOptions& options, const Gate& gate, const CurrentRules& current_rules,
            const Store& store, Counters& counters);

  /// Prepares a question about a user whom the Gate does not refuse; its views are the arguments'.
  /// kNoRules: no rule set is loaded yet; candidates are hashed all the same. Throws std::bad_alloc
  /// and what the host's clock throws.
  [[nodiscard]] Reason prepare(std::string_view user, std::span<const Candidate> candidates,
                               const CheckOptions& options, Question& question) const;

  /// Whether the store need not be asked: every candidate is capped for certain, or no rule counts
  /// anything for them. `result` then has the verdicts. Throws std::bad_alloc.
  [[nodiscard]] bool answer_without_record(const Question& question, CheckResult& result);

  /// Judges by a record. Any reason other than kPassed means that there is no record. Throws
  /// std::bad_alloc.
  void answer(const Question& question, const ReadOutcome& outcome, CheckResult& result);

  /// Gives all candidates the same answer. Does not throw where `result.verdicts` has the room.
  void refuse(std::size_t candidate_count, Reason reason, CheckResult& result) const;

  /// For first_allowed(), as answer_without_record() and answer(). `picks` has room for `k` of
  /// them.
  [[nodiscard]] bool pick_without_record(const Question& question, std::size_t k, Picks& picks);
  [[nodiscard]] Reason pick_by_record(const Question& question, std::size_t k,
                                      const ReadOutcome& outcome, Picks& picks);
  /// The first `k` where the history is not available.
  void pick_refused(std::size_t candidate_count, std::size_t k, Reason reason, Picks& picks) const;

  /// The impression as it is remembered; nullopt: it is not.
  std::optional<ledger::Entry> note_shown(const Impression& shown) noexcept;
  /// Notes that other servers have been told of an impression that is remembered.
  void mark_shared(std::string_view user, const ledger::Entry& shown) noexcept;
  /// If the impression was shared, `released` becomes that impression, now.
  bool take_back_shown(const Impression& shown, std::optional<ledger::Entry>& released) noexcept;

  /// For those who explain, the two halves of answer(). Puts the history into scratch.ledger. Any
  /// reason but kPassed says why it could not.
  [[nodiscard]] Reason load(Scratch& scratch, const Question& question, const ReadOutcome& outcome);
  /// Judges without the history, for that reason. Nothing is counted.
  WithoutHistory answer_without(Scratch& scratch, const Question& question, Reason reason,
                                CheckResult& result);
  /// After judging by a replica's record, which may be older than what this process knows: a cap
  /// that it has read from the master stands, and none is replaced by what the replica says. How
  /// many such caps there are; they are not counted.
  std::uint64_t finish_stale(const Question& question, CheckResult& result) const;

  /// For those who decide by a record and write: puts it into scratch.ledger. kUndecodable, or
  /// kPassed. Throws std::bad_alloc.
  [[nodiscard]] Reason decode(Scratch& scratch, std::string_view record);
  /// Adds what this process has shown, except the events with these fingerprints. Throws
  /// std::bad_alloc.
  void add_shown(Scratch& scratch, std::string_view user,
                 std::span<const std::uint32_t> except = {});
  /// An impression as an entry without a time; nullopt where an id is outside its range.
  [[nodiscard]] static std::optional<ledger::Entry> event_of(const Candidate& shown,
                                                             std::string_view event_id) noexcept;
  /// Forgets what note_shown() has said of it, if anything.
  void forget_shown(std::string_view user, const ledger::Entry& event) noexcept;
  [[nodiscard]] ScratchPool& scratches() noexcept { return scratches_; }

  [[nodiscard]] Instant instant_of(const CheckOptions& options) const;
  [[nodiscard]] std::chrono::microseconds deadline_of(const CheckOptions& options) const noexcept;
  void add_stats(CheckerStats& stats) const noexcept;
  [[nodiscard]] const ShadowCounts& shadows() const noexcept { return shadows_; }

 private:
  [[nodiscard]] std::optional<ledger::Entry> shown_entry(const Impression& shown) const noexcept;
  /// Asks the store. A user whom the Gate does not refuse.
  [[nodiscard]] rules::Completeness completeness_of(std::string_view user) const noexcept;
  [[nodiscard]] bool all_kept(const Question& question, CheckResult& result) const;
  void keep_caps(const Scratch& scratch, const Question& question,
                 const CheckResult& result) noexcept;
  std::uint64_t put_kept_caps(const Question& question, CheckResult& result) const;
  void count(const WithoutHistory& verdicts) noexcept;
  void note_undecodable() noexcept;
  [[nodiscard]] bool allows(Reason reason) const noexcept;

  const CheckerOptions& options_;
  const Gate& gate_;
  const CurrentRules& current_rules_;
  const Store& store_;
  Counters& counters_;
  std::unique_ptr<ShownEvents> shown_;    // null: switched off
  std::unique_ptr<NegativeCache> cache_;  // null: switched off
  ScratchPool scratches_;
  ShadowCounts shadows_;
  std::atomic<std::uint64_t> undecodable_logged_{0};
};

}  // namespace fcap::checker
