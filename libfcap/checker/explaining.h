#pragma once

#include <span>
#include <string_view>

#include <fcap/check_options.h>
#include <fcap/explain.h>

#include "checker/parts.h"
#include "checker/pool.h"
#include "checker/read_group.h"

namespace fcap::checker {

/// Why a check answers as it does. Asks the store what a check asks it, and judges by the same
/// functions; but it always reads, because the negative cache knows no more than a verdict.
///
/// Thread safety: all functions from any thread.
class Explaining {
 public:
  /// Throws std::bad_alloc.
  explicit Explaining(SharedParts parts);

  Explanation explain(std::string_view user, std::span<const Candidate> candidates,
                      const CheckOptions& options) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void explain_one(CountedCall& inside, std::string_view user,
                   std::span<const Candidate> candidates, const CheckOptions& options,
                   Explanation& explanation);
  [[nodiscard]] ReadOutcome read(CountedCall& inside, ReadGroup& group, Clock::time_point deadline);
  void explain_record(const Question& question, const ReadOutcome& outcome,
                      std::span<const Candidate> candidates, bool as_of, Explanation& explanation);
  void answer_alike(Reason reason, std::span<const Candidate> candidates,
                    Explanation& explanation) const;

  SharedParts parts_;
  Pool<ReadGroup>::Owner read_groups_;
};

}  // namespace fcap::checker
