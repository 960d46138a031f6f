#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/time.h>
#include <fcap/verdict.h>

#include "checker/current_rules.h"
#include "checker/negative_cache.h"
#include "rules/evaluate.h"

namespace fcap::checker {

/// One user's question, prepared once: the candidates are hashed, and the rule set and segments to
/// judge by are chosen. Used again, so that it does not allocate.
struct Question {
  std::string_view user;
  Instant now;
  std::span<const std::string_view> segments;
  std::vector<rules::CandidateKey> candidates;
  HeldRules held;
  /// What the user's record lacks, as its writer keeps it.
  rules::Completeness completeness;
  /// Its part of the keys in the negative cache; none where that is switched off.
  std::optional<NegativeCache::CacheSubject> subject;
  /// CheckOptions::keep_record.
  bool keeps_record = false;
};

/// Stands for a candidate with an id outside its range; no hash has more than 48 bits.
inline constexpr rules::CandidateKey kInvalidCandidate{.campaign = ~std::uint64_t{0},
                                                       .creative = 0};

[[nodiscard]] inline bool is_invalid(const rules::CandidateKey& key) noexcept {
  return key.campaign == kInvalidCandidate.campaign;
}

/// Throws std::bad_alloc.
void hash_candidates(std::span<const Candidate> candidates, std::vector<rules::CandidateKey>& keys);

/// Whether a verdict could depend on what was recorded: whether a rule with a limit above 0,
/// enforced or shadow, could apply to a candidate. Whether it is in force, and for this user, is
/// not looked at. `held.rules` is not null.
[[nodiscard]] bool needs_history(const Question& question) noexcept;

}  // namespace fcap::checker
