#include "rules/compile.h"

namespace fcap::rules {

void find_warnings(const RuleSetSpec& spec, const CompiledRules& compiled, Texts& warnings) {
  (void)compiled;
  for (const Rule& rule : spec.rules) {
    if (rule.start && rule.end && *rule.start >= *rule.end) {
      warnings.add("rule \"" + rule.id + "\" can never act: it ends before it starts");
    }
  }
}

}  // namespace fcap::rules
