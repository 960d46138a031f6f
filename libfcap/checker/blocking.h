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
class Blocking {
 public:
  /// Throws std::bad_alloc.
  explicit Blocking(Parts parts);

  CheckResult check(std::string_view user, std::span<const Candidate> candidates,
                    const CheckOptions& options) noexcept;
  std::vector<CheckResult> check_batch(std::span<const CheckRequest> requests,
                                       const CheckOptions& options) noexcept;
  PickResult first_allowed(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                           const CheckOptions& options) noexcept;

  /// Lets go of the rules that rest in memory which is kept for the next check.
  void let_go_of_rules() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Call;

  [[nodiscard]] HeldGroup acquire_group(std::size_t question_count);
  [[nodiscard]] Reason prepare(const Call& call, std::string_view user,
                               std::span<const Candidate> candidates, Question& question) const;
  [[nodiscard]] const ReadGroup::Read& read_one(Call& call, std::string_view user,
                                                ReadGroup& group);
  void check_one(Call& call, std::string_view user, std::span<const Candidate> candidates,
                 CheckResult& result);
  [[nodiscard]] Reason pick(Call& call, std::string_view user, std::span<const Candidate> ranked,
                            std::size_t k, Picks& picks);
  template <typename Judge>
  bool guarded(std::size_t candidate_count, CheckResult& result, const Judge& judge);
  void check_some(Call& call, std::span<const CheckRequest> requests,
                  std::span<CheckResult> results, bool last);
  void judge_arriving(const Call& call, ReadGroup& group, std::span<CheckResult> results);

  Parts parts_;
  Pool<ReadGroup>::Owner read_groups_;
};

}  // namespace fcap::checker
