// Segments from PostgreSQL.
#include <utility>

#include "postgres/pg_copy.h"
#include "postgres/pg_version.h"
#include "sources/segment_source.h"

namespace fcap::sources {
namespace {

Status in_row(std::string_view table, postgres::Cell id, const Status& status) {
  if (status.ok()) return status;
  return Status::error(
      StatusCode::kCorrupt,
      std::string(table) + " \"" + std::string(id.value_or("NULL")) + "\": " + status.text());
}

// Reads the tables row by row, so that no more than one row is held beside the segments.
class SegmentReader {
 public:
  SegmentReader(postgres::PgConnection& connection, const postgres::PgWait& wait)
      : connection_(connection), wait_(wait) {}

  Result<std::shared_ptr<const SegmentSet>> read(std::uint64_t version) {
    // Cast, so that a column of another type is not taken for text.
    Status status = copy("SELECT id::text, bitmap::bytea FROM segments", [this](auto cells) {
      return in_row("segments", cells[0], add_bitmap(cells[0], cells[1]));
    });
    if (status.ok()) {
      status =
          copy("SELECT segment_id::text, user_id::text FROM segment_members", [this](auto cells) {
            return in_row("segment_members", cells[0], add_member(cells[0], cells[1]));
          });
    }
    if (!status.ok()) return status;
    return std::move(builder_).finish(version);
  }

 private:
  Status copy(const std::string& select, postgres::CopiedRows::TakeRow take_row) {
    postgres::CopiedRows rows(2, std::move(take_row));
    return connection_.copy_out("COPY (" + select + ") TO STDOUT (FORMAT binary)", wait_,
                                [&rows](std::string_view message) { return rows.read(message); });
  }

  Status add_bitmap(postgres::Cell id, postgres::Cell bitmap) {
    const std::string_view name = id.value_or("");
    return bitmap ? builder_.add_bitmap(name, *bitmap) : builder_.name(name);
  }

  Status add_member(postgres::Cell segment, postgres::Cell user) {
    return builder_.add(segment.value_or(""), user.value_or(""));
  }

  postgres::PgConnection& connection_;
  const postgres::PgWait& wait_;
  SegmentSetBuilder builder_;
};

}  // namespace

Result<std::optional<LoadedSegments>> PostgresSegments::look(const postgres::PgWait& wait) {
  Result<postgres::PgConnection> connection = postgres::PgConnection::connect(conninfo_, wait);
  if (!connection.ok()) return connection.status();
  if (Status status = postgres::begin_reading(connection.value(), wait); !status.ok())
    return status;
  Result<base::TableVersion> version =
      postgres::read_version(connection.value(), "segment_set_version", wait);
  if (!version.ok()) return version.status();
  std::optional<LoadedSegments> loaded;
  if (version.value() != given_) {
    auto set = SegmentReader(connection.value(), wait).read(version.value().version);
    if (!set.ok()) return set.status();
    loaded.emplace(LoadedSegments{std::move(set).value(), {}, version.value().accepted_version});
    given_ = std::move(version).value();
  }
  // Nothing was written; a connection that breaks here has still given its answer.
  (void)connection.value().query("COMMIT", wait).ok();
  return loaded;
}

}  // namespace fcap::sources
