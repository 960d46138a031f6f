#include "rules/membership.h"

#include <algorithm>

#include "rules/rule_set_access.h"

namespace fcap::rules {

void Membership::begin(const Evaluator::EvaluatorInput& question) {
  const CompiledRules& rules = RuleSetAccess::compiled(question.rules);
  if (rules.segments.empty()) {
    known_.clear();
    rules_serial_ = rules.serial;
    return;
  }
  stored_ = question.stored;
  user_id_ = question.user;
  looked_up_ = false;
  const std::uint64_t stored_serial = stored_ == nullptr ? 0 : stored_->serial();
  if (rules_serial_ != rules.serial || stored_serial_ != stored_serial) bind(rules, stored_);
  check_ += 2;
  if (check_ == 0) {
    std::fill(known_.begin(), known_.end(), 0);
    check_ = 2;
  }
  for (const std::string_view name : question.segments) {
    if (const auto known = rules.segments.find(name); known != rules.segments.end()) {
      known_[known->second] = check_ | 1U;
    }
  }
}

// Names are compared here, once after a swap, and not in a check.
void Membership::bind(const CompiledRules& rules, const SegmentSet* stored) {
  rules_serial_ = 0;  // should memory run out below, the next check must come here again
  known_.assign(rules.segments.size(), 0);
  check_ = 0;
  stored_index_.assign(rules.segments.size(), kNone);
  for (const auto& [name, segment] : rules.segments) {
    if (stored != nullptr) stored_index_[segment] = stored->index_of(name).value_or(kNone);
  }
  rules_serial_ = rules.serial;
  stored_serial_ = stored == nullptr ? 0 : stored->serial();
}

bool Membership::ask_stored(std::uint32_t segment) noexcept {
  const std::uint32_t index = stored_index_[segment];
  bool member = false;
  if (index != kNone) {
    if (!looked_up_) user_ = stored_->look_up(user_id_);
    looked_up_ = true;
    member = stored_->contains(index, user_);
  }
  known_[segment] = check_ | (member ? 1U : 0U);
  return member;
}

}  // namespace fcap::rules
