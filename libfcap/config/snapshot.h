#pragma once

#include <string>
#include <string_view>

#include <fcap/rule_set.h>
#include <fcap/status.h>

namespace fcap::config {

/// The last good rule set in a file: one header line with a format number, the payload's length and
/// its XXH3-64, then the rules' JSON. Written to a temporary file, synced and renamed, so a reader
/// never sees half of one.
Status write_snapshot(const std::string& path, const RuleSetSpec& spec);

/// kNotFound when there is no file, kCorrupt when the bytes are not a whole snapshot.
Result<RuleSetSpec> read_snapshot(const std::string& path);

/// The parsing half of read_snapshot().
Result<RuleSetSpec> parse_snapshot(std::string_view bytes);

/// The checking half of parse_snapshot(): the rules' JSON of a whole snapshot, a view into `bytes`.
Result<std::string_view> snapshot_payload(std::string_view bytes);

/// What write_snapshot() writes.
[[nodiscard]] std::string snapshot_bytes(const RuleSetSpec& spec);

/// The reading half of read_snapshot(): the file's bytes, unchecked.
Result<std::string> read_snapshot_bytes(const std::string& path);

/// The first line, which holds the checksum: two whole snapshots with equal headers are equal.
[[nodiscard]] std::string_view snapshot_header(std::string_view bytes);

}  // namespace fcap::config
