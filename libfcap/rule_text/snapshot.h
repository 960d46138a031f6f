#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "base/file_handle.h"
#include "base/table_version.h"
#include "rules/shared_spec.h"

/// The last good rule set in a file: one header line with a format number, the payload's length and
/// its XXH3-64, then the payload. Written to a temporary file, synced and renamed, so a reader
/// never sees half of one. docs/rules-json.md describes its bytes.
namespace fcap::rule_text {

/// What a snapshot holds.
struct Snapshot {
  RuleSetSpec spec;
  base::TableVersion version = {};
};

/// What is written into one. Rules and campaigns are not copied.
struct SnapshotView {
  base::TableVersion version = {};
  std::span<const Rule* const> rules = {};
  std::span<const Campaign* const> campaigns = {};
};

/// `version` is what the set was read from, and has its number.
[[nodiscard]] SnapshotView view_of(const RuleSet& set, base::TableVersion version);

/// Writes piece by piece, so that it takes a few hundred kilobytes of memory.
Status write_snapshot(const std::string& path, const SnapshotView& rules);
Status write_snapshot(const std::string& path, const RuleSetSpec& spec);

/// Does the same, but a file that holds these very rules is only touched, which tells its readers
/// that it is still current.
Status publish_snapshot(const std::string& path, const SnapshotView& rules);

/// Sets a snapshot's time of modification.
void touch_snapshot(const std::string& path) noexcept;

/// A snapshot file, opened. It is read in pieces and not mapped: a file that somebody cuts short
/// while it is read must not end the process.
class SnapshotFile {
 public:
  /// kNotFound when there is no file, kCorrupt when it is no file or too large.
  static Result<SnapshotFile> open(const std::string& path);

  /// The first line, which holds the checksum: two whole snapshots with equal headers are equal.
  [[nodiscard]] const std::string& header() const noexcept { return header_; }
  /// Whether length and checksum are what the header says.
  [[nodiscard]] bool is_whole();
  /// Gives the rules and campaigns to `sink`. kCorrupt when the bytes are not a whole snapshot;
  /// what the sink has got by then must not be used.
  Result<base::TableVersion> read(rules::SpecSink& sink);

 private:
  SnapshotFile(std::string path, base::FileHandle file, std::uint64_t bytes);
  std::size_t give(char* to, std::size_t room);

  std::string path_;
  base::FileHandle file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t at_ = 0;
  std::string header_;
};

/// Opens and reads.
Result<Snapshot> load_snapshot(const std::string& path);
/// The rules alone.
Result<RuleSetSpec> read_snapshot(const std::string& path);

/// The rules in the bytes of a snapshot; kCorrupt as above. Any bytes are safe.
Result<RuleSetSpec> parse_snapshot(std::string_view bytes);

/// What write_snapshot() writes.
[[nodiscard]] std::string snapshot_bytes(const RuleSetSpec& spec);

/// The first line of a snapshot's bytes.
[[nodiscard]] std::string_view snapshot_header(std::string_view bytes);

}  // namespace fcap::rule_text
