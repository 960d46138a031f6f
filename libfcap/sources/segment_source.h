#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fcap/status.h>

#include "base/table_version.h"
#include "postgres/pg_connection.h"
#include "sources/segment_loading.h"

namespace fcap::sources {

/// Where segments come from. Remembers what it gave last.
///
/// Not thread-safe.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;

  /// None: unchanged since the last time. Everything or nothing: the status names the first file or
  /// row that cannot be read. A source without segments gives an empty set.
  virtual Result<std::optional<LoadedSegments>> look(const postgres::PgWait& wait) = 0;

 protected:
  SegmentSource() = default;
};

/// The tables segments and segment_members, all as of one moment. Its version is theirs.
class PostgresSegments final : public SegmentSource {
 public:
  explicit PostgresSegments(std::string conninfo) : conninfo_(std::move(conninfo)) {}
  Result<std::optional<LoadedSegments>> look(const postgres::PgWait& wait) override;

 private:
  std::string conninfo_;
  std::optional<base::TableVersion> given_;
};

/// The files of a directory: NAME.ids holds one user id per line, NAME.roaring64 a portable 64-bit
/// roaring bitmap of numeric ones. Looked at again when a file, its size, its time or its inode is
/// another. Its version is the newest file's time of modification, in ms since 1970.
class SegmentDirectory final : public SegmentSource {
 public:
  explicit SegmentDirectory(std::string path) : path_(std::move(path)) {}
  Result<std::optional<LoadedSegments>> look(const postgres::PgWait& wait) override;

 private:
  std::string path_;
  std::optional<std::string> given_;  ///< the files as they were
};

}  // namespace fcap::sources
