#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "base/file_handle.h"
#include "rules/shared_spec.h"

/// The last good rule set in a file: one header line with a format number, the payload's length and
/// its XXH3-64, then the payload. Written to a temporary file, synced and renamed, so a reader
/// never sees half of one. Format 2, a binary one, is written; format 1, JSON, is read as well.
/// docs/rules-json.md describes both.
namespace fcap::rule_text {

/// What a snapshot says of its rules. Together they name the state of the tables that the rules
/// were read from (TableVersion).
struct SnapshotHead {
  std::uint64_t version = 0;
  /// Empty: not known.
  std::string changed_at = {};
};

/// What a snapshot holds.
struct Snapshot {
  RuleSetSpec spec;
  std::string changed_at = {};  ///< as in SnapshotHead
};

/// What is written into one. Nothing is copied.
struct SnapshotView {
  std::uint64_t version = 0;
  std::string_view changed_at = {};
  std::span<const Rule* const> rules = {};
  std::span<const Campaign* const> campaigns = {};
};

[[nodiscard]] SnapshotView view_of(const RuleSet& set, std::string_view changed_at);

/// Writes piece by piece, so that it takes a few hundred kilobytes of memory.
Status write_snapshot(const std::string& path, const SnapshotView& rules);
Status write_snapshot(const std::string& path, const RuleSetSpec& spec);

/// The same, but a file that holds these very rules is only touched, which tells its readers that
/// it is still current.
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
  Result<SnapshotHead> read(rules::SpecSink& sink);

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
