#pragma once

#include <memory>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "rules/compiled_rules.h"
#include "rules/shared_spec.h"

namespace fcap::rules {

/// What fcap's own parts may do with a rule set beyond its public face.
struct RuleSetAccess {
  /// RuleSet::build() from a spec that may share rules with another set.
  static Result<std::shared_ptr<const RuleSet>> build(SharedSpec spec,
                                                      const RuleSet::Options& options);
  [[nodiscard]] static const CompiledRules& compiled(const RuleSet& set) noexcept;
};

}  // namespace fcap::rules
