#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/checker.h>

#include "checker/parts.h"
#include "checker/pool.h"
#include "checker/read_group.h"

namespace fcap::checker {

/// The forms of a check whose callers wait.
///
/// Thread safety: all functions from any thread.
class BlockingChecks {
 public:
  /// Throws std::bad_alloc.
  explicit BlockingChecks(SharedParts parts);

  CheckResult check(std::string_view user, std::span<const Candidate> candidates,
                    const CheckOptions& options) noexcept;
  std::vector<CheckResult> check_batch(std::span<const CheckRequest> requests,
                                       const CheckOptions& options) noexcept;
  PickResult first_allowed(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                           const CheckOptions& options) noexcept;

  /// Releases the rule sets that memory which is kept for the next check still holds. Otherwise a
  /// replaced set would stay alive until that memory is used again.
  void drop_rules() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct StartedCall;

  [[nodiscard]] HeldGroup acquire_group(std::size_t question_count);
  [[nodiscard]] Reason prepare(const StartedCall& call, std::string_view user,
                               std::span<const Candidate> candidates, Question& question) const;
  [[nodiscard]] const ReadGroup::Read& read_one(StartedCall& call, std::string_view user,
                                                ReadGroup& group);
  void check_one(StartedCall& call, std::string_view user, std::span<const Candidate> candidates,
                 CheckResult& result);
  [[nodiscard]] Reason pick(StartedCall& call, std::string_view user,
                            std::span<const Candidate> ranked, std::size_t k, Picks& picks);
  template <typename Judge>
  bool guarded(std::size_t candidate_count, CheckResult& result, const Judge& judge);
  void check_some(StartedCall& call, std::span<const CheckRequest> requests,
                  std::span<CheckResult> results, bool last);
  void judge_arriving(const StartedCall& call, ReadGroup& group, std::span<CheckResult> results);

  SharedParts parts_;
  Pool<ReadGroup>::Owner read_groups_;
};

}  // namespace fcap::checker
