#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fcap/segment_set.h>
#include <fcap/status.h>

namespace fcap::sources {

/// Segments as a source has them.
struct LoadedSegments {
  std::shared_ptr<const SegmentSet> set;
  /// What is odd about the source, and did not keep it from being read.
  std::vector<std::string> remarks;
  /// A shrink up to this version is meant, says the source; 0: of none.
  std::uint64_t accepted_version = 0;
};

/// Reads once from PostgreSQL (a libpq connection string). kNotFound: it has no such tables.
Result<LoadedSegments> load_segments_from_postgres(const std::string& conninfo,
                                                   std::chrono::milliseconds timeout);
/// Reads once from a directory.
Result<LoadedSegments> load_segments_from_directory(const std::string& path);

}  // namespace fcap::sources
