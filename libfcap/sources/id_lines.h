#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/segment_set.h>
#include <fcap/status.h>

namespace fcap::sources {

/// Reads a file of user ids, one per line, in pieces of any size, and adds the ids to a segment.
/// Lines end with "\n" or "\r\n", the last one also without; empty lines and a byte order mark are
/// passed over. Any bytes are safe.
///
///     IdLines lines("vip", builder);
///     while (…) if (Status status = lines.read(piece); !status.ok()) return status;
///     return lines.finish();
///
/// Not thread-safe. Holds no more than a piece and a line.
class IdLines {
 public:
  /// The builder must outlive this.
  IdLines(std::string segment, SegmentSetBuilder& builder)
      : segment_(std::move(segment)), builder_(builder) {}

  /// kCorrupt: a line holds no user id; the text says which. Nothing may be read after that.
  Status read(std::string_view piece);
  /// Takes a last line that has no end.
  Status finish();

 private:
  Status add(std::string_view line);

  std::string segment_;
  SegmentSetBuilder& builder_;
  std::string held_;        // the beginning of a line whose end is in a later piece
  std::uint64_t line_ = 0;  // how many lines have ended
};

}  // namespace fcap::sources
