// A segment's file of user ids, NAME.ids: any bytes are safe, the segment has just the ids on its
// lines, and pieces of any size give the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/segment_set.h>

#include "ledger/ids.h"
#include "sources/id_lines.h"

namespace fcap {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

struct Expected {
  std::set<std::string_view> ids;
  std::optional<std::string> mistake;  // how the text of the refusal begins
};

// Looks at the whole file at once, unlike the reader.
Expected expected_of(std::string_view file) {
  Expected expected;
  for (int line = 1; !file.empty(); ++line) {
    const std::size_t end = file.find('\n');
    std::string_view id = file.substr(0, end);
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
    if (id.ends_with('\r')) id.remove_suffix(1);
    if (line == 1 && id.starts_with("\xEF\xBB\xBF")) id.remove_prefix(3);
    if (id.size() > ledger::kIdBytesMax) {
      expected.mistake = "line " + std::to_string(line) + ": user id: must have 1 to 256 bytes";
      break;
    }
    if (!id.empty()) expected.ids.insert(id);
  }
  return expected;
}

Status read(std::string_view file, std::size_t piece_bytes, SegmentSetBuilder& builder) {
  sources::IdLines lines("s", builder);
  while (!file.empty()) {
    const std::string_view piece = file.substr(0, piece_bytes);
    if (Status status = lines.read(piece); !status.ok()) return status;
    file.remove_prefix(piece.size());
  }
  return lines.finish();
}

void require_members(const SegmentSet& set, const std::set<std::string_view>& ids) {
  require(set.memory().members == ids.size());
  for (const std::string_view id : ids) {
    require(set.contains("s", id));
    // Neither a part of an id nor a number in another form is the same user.
    for (const std::string& other :
         {std::string(id.substr(1)), std::string(id) + "\r", "0" + std::string(id)}) {
      require(set.contains("s", other) == ids.contains(other));
    }
  }
}

}  // namespace
}  // namespace fcap

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const Expected expected = expected_of(file);
  for (const std::size_t piece_bytes : {1 + size % 67, size + 1}) {
    SegmentSetBuilder builder;
    const Status status = read(file, piece_bytes, builder);
    require(status.ok() != expected.mistake.has_value());
    if (expected.mistake)
      require(status.code() == StatusCode::kCorrupt &&
              status.text().starts_with(*expected.mistake));
    require_members(*std::move(builder).finish(1), expected.ids);
  }
  return 0;
}
