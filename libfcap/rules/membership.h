#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rules/compiled_rules.h"
#include "rules/evaluate.h"

namespace fcap::rules {

/// Which of a rule set's segments the user is in: those that the caller names, and those whose
/// stored members the user is among. Stored ones are asked only where a rule wants to know, each
/// once per check, and the user is looked up before the first of them.
class Membership {
 public:
  void begin(const Evaluator::EvaluatorInput& question);
  [[nodiscard]] bool is_member(std::uint32_t segment) noexcept {
    if (segment >= known_.size()) return false;
    const std::uint32_t known = known_[segment];
    return (known | 1U) == (check_ | 1U) ? (known & 1U) != 0 : ask_stored(segment);
  }

 private:
  void bind(const CompiledRules& rules, const SegmentSet* stored);
  bool ask_stored(std::uint32_t segment) noexcept;

  // By the rule set's numbers of its segments. Rebuilt when rules or stored segments change.
  std::vector<std::uint32_t> known_;         ///< the check that asked last, and whether a member
  std::vector<std::uint32_t> stored_index_;  ///< kNone: not stored
  std::uint64_t rules_serial_ = 0;
  std::uint64_t stored_serial_ = 0;

  std::uint32_t check_ = 0;  ///< even
  const SegmentSet* stored_ = nullptr;
  std::string_view user_id_;
  SegmentSet::User user_;
  bool looked_up_ = false;
};

}  // namespace fcap::rules
