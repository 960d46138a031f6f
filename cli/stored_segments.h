#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>

#include "cli/cli_settings.h"

namespace fcap::cli {

/// Stored segments, and where they came from.
struct StoredSegments {
  std::shared_ptr<const SegmentSet> set;  ///< null: there is no source of them
  std::string source;                     ///< for people
  std::vector<std::string> warnings;
};

/// Reads them from --segments, else from PostgreSQL where the rules are read from there, else from
/// nowhere. A database without tables for them, or one that the rules' snapshot stands in for, is
/// warned of.
Result<StoredSegments> load_segments(const AccessSettings& access);

/// The same for answering by these rules: nothing is read unless one of them is for a segment. Adds
/// a warning for each segment that they name and that is not stored.
Result<StoredSegments> load_segments_for(const RuleSet& rules, const AccessSettings& access);

/// One line: version, source, totals.
[[nodiscard]] std::string summary_of(const StoredSegments& stored);
/// A table of the segments; nothing where there are none.
void print_segments(const StoredSegments& stored, std::ostream& out);
/// {"version", "source", "members", "bytes", "dictionary_bytes", "segments": [{"name", "members",
/// "bytes"}]}; null where there is no source.
[[nodiscard]] nlohmann::ordered_json segments_json(const StoredSegments& stored);

}  // namespace fcap::cli
