#pragma once

#include <string>
#include <string_view>

#include <fcap/rule_set.h>
#include <fcap/status.h>

namespace fcap::rule_text {

/// A rule set as one JSON object: the form of rule files, of `fcap rules --json` and of snapshots.
/// docs/rules-json.md describes it. Unknown members, wrong types and values out of range are
/// errors; all of them are reported at once, each with its place.
Result<RuleSetSpec> parse_rules_json(std::string_view json);

/// Does the same; where there are mistakes, `sound` gets the rules and campaigns of which id,
/// scope, target and window could be read, so that RuleSet::build() can tell what else is wrong
/// with them.
Result<RuleSetSpec> parse_rules_json(std::string_view json, RuleSetSpec& sound);

/// What a rules file calls itself ("name"), for people; empty: nothing.
std::string name_in_rules_json(std::string_view json);

/// Writes the same object; parse_rules_json() of it gives an equal spec.
std::string to_rules_json(const RuleSetSpec& spec);

}  // namespace fcap::rule_text
