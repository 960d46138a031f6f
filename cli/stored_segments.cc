#include "cli/stored_segments.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/instants.h"
#include "cli/table.h"
#include "sources/segment_loading.h"
#include "sources/segment_warnings.h"

namespace fcap::cli {
namespace {

// A hundred million members take longer than --timeout; the same server has just given the rules.
constexpr std::chrono::minutes kLoadTimeout{5};

Result<StoredSegments> taken(Result<sources::LoadedSegments> loaded, const char* setting,
                             std::string source) {
  if (!loaded.ok()) {
    const Status failed = loaded.status();
    return Status::error(failed.code(), std::string(setting) + ": " + failed.text(),
                         failed.retryable());
  }
  return StoredSegments{.set = std::move(loaded.value().set),
                        .source = std::move(source),
                        .warnings = std::move(loaded.value().remarks)};
}

}  // namespace

Result<StoredSegments> load_segments(const AccessSettings& access) {
  if (!access.segments_directory.empty()) {
    return taken(sources::load_segments_from_directory(access.segments_directory), "--segments",
                 "directory " + access.segments_directory);
  }
  if (!access.rules_file.empty() || access.postgres.empty()) return StoredSegments{};
  Result<StoredSegments> stored =
      taken(sources::load_segments_from_postgres(access.postgres, kLoadTimeout), "--postgres",
            "PostgreSQL");
  const bool goes_on = stored.status().code() == StatusCode::kNotFound ||
                       (stored.status().retryable() && !access.snapshot_file.empty());
  if (stored.ok() || !goes_on) return stored;
  return StoredSegments{
      .set = nullptr, .source = {}, .warnings = {"no stored segments: " + stored.status().text()}};
}

Result<StoredSegments> load_segments_for(const RuleSet& rules, const AccessSettings& access) {
  const bool any = std::any_of(rules.rules().begin(), rules.rules().end(),
                               [](const Rule& rule) { return rule.segment.has_value(); });
  if (!any) return StoredSegments{};
  Result<StoredSegments> stored = load_segments(access);
  if (!stored.ok() || stored.value().set == nullptr) return stored;
  for (std::string& warning : sources::segment_warnings(rules, *stored.value().set)) {
    stored.value().warnings.push_back(std::move(warning));
  }
  return stored;
}

std::string summary_of(const StoredSegments& stored) {
  const SegmentSet::Memory& memory = stored.set->memory();
  return fmt::format("stored segments version {} from {}: {}, {}, {}", stored.set->version(),
                     stored.source, counted(stored.set->names().size(), "segment", "segments"),
                     counted(memory.members, "member", "members"),
                     counted(memory.bytes(), "byte", "bytes"));
}

void print_segments(const StoredSegments& stored, std::ostream& out) {
  if (stored.set == nullptr || stored.set->names().empty()) return;
  std::vector<std::vector<std::string>> rows{{"SEGMENT", "MEMBERS", "BYTES"}};
  const auto& names = stored.set->names();
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const SegmentSet::Memory& memory = stored.set->memory(i);
    rows.push_back({names[i], std::to_string(memory.members), std::to_string(memory.bitmap_bytes)});
  }
  print_table(rows, out);
}

nlohmann::ordered_json segments_json(const StoredSegments& stored) {
  nlohmann::ordered_json json;
  if (stored.set == nullptr) return json;
  const SegmentSet::Memory& memory = stored.set->memory();
  json["version"] = stored.set->version();
  json["source"] = stored.source;
  json["members"] = memory.members;
  json["bytes"] = memory.bytes();
  json["dictionary_bytes"] = memory.dictionary_bytes;
  json["segments"] = nlohmann::ordered_json::array();
  const auto& names = stored.set->names();
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const SegmentSet::Memory& own = stored.set->memory(i);
    json["segments"].push_back(
        {{"name", names[i]}, {"members", own.members}, {"bytes", own.bitmap_bytes}});
  }
  return json;
}

}  // namespace fcap::cli
