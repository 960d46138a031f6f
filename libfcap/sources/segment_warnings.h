#pragma once

#include <string>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>

namespace fcap::sources {

/// One text for each segment that a rule names and that is not stored, sorted: its rules apply only
/// to users whom callers put into it.
[[nodiscard]] std::vector<std::string> segment_warnings(const RuleSet& rules,
                                                        const SegmentSet& stored);

}  // namespace fcap::sources
