#include "sources/segment_warnings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

#include "rules/rule_set_access.h"

namespace fcap::sources {

std::vector<std::string> segment_warnings(const RuleSet& rules, const SegmentSet& stored) {
  // A set of rules knows the few names there are; a million rules are looked through only where one
  // of them is missing.
  const auto& named = rules::RuleSetAccess::compiled(rules).segments;
  const bool all_stored = std::all_of(named.begin(), named.end(), [&stored](const auto& segment) {
    return stored.index_of(segment.first).has_value();
  });
  if (all_stored) return {};
  struct NamedBy {
    std::string_view rule;  // the smallest id
    std::size_t count = 0;
  };
  std::map<std::string_view, NamedBy> unknown;
  for (const Rule& rule : rules.rules()) {
    if (!rule.segment || stored.index_of(*rule.segment)) continue;
    NamedBy& named_by = unknown[*rule.segment];
    if (named_by.count == 0 || rule.id < named_by.rule) named_by.rule = rule.id;
    ++named_by.count;
  }
  std::vector<std::string> warnings;
  for (const auto& [segment, named_by] : unknown) {
    std::string text = "segment \"" + std::string(segment) + "\", which rule \"" +
                       std::string(named_by.rule) + "\"";
    if (named_by.count > 1) text += " (and " + std::to_string(named_by.count - 1) + " more)";
    warnings.push_back(text +
                       " names, is not among the stored ones: it has no members but those "
                       "that callers name");
  }
  return warnings;
}

}  // namespace fcap::sources
