#pragma once

#include <memory>

#include <fcap/rule_set.h>

#include "ledger/encode.h"

namespace fcap::rules {

/// Keeps, in a record that is trimmed for size, the newest limit + 1 entries of each (scope, type)
/// that a rule of the set needs.
class KeepNeeded final : public ledger::KeepPolicy {
 public:
  explicit KeepNeeded(std::shared_ptr<const RuleSet> rules);
  void mark_needed(const ledger::Ledger& ledger, std::vector<bool>& keep) const override;

 private:
  std::shared_ptr<const RuleSet> rules_;
};

}  // namespace fcap::rules
