// Any bytes as a stored bitmap and as a binary COPY: reading is safe, and what is read as a bitmap
// has just the members that CRoaring finds in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <roaring/roaring.hh>

#include <fcap/segment_set.h>

#include "postgres/pg_copy.h"
#include "segments/roaring_format.h"

namespace fcap {
namespace {

constexpr int kMembersLookedAtMax = 200;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_same_members(std::string_view bytes) {
  SegmentSetBuilder builder;
  const Status status = builder.add_bitmap("s", bytes);
  require(status.ok() || status.code() == StatusCode::kCorrupt);
  segments::Roaring64Reader reader(bytes);
  const auto set = std::move(builder).finish(1);
  std::uint64_t members = 0;
  while (const auto bucket = reader.next()) {
    members += bucket->members;
    const Roaring bitmap = Roaring::readSafe(bucket->bytes.data(), bucket->bytes.size());
    require(bitmap.cardinality() == bucket->members);
    int left = kMembersLookedAtMax;
    for (const std::uint32_t low : bitmap) {
      if (left-- == 0) break;
      const std::uint64_t number = std::uint64_t{bucket->high} << 32U | low;
      require(set->contains("s", std::to_string(number)));
    }
  }
  require(reader.status().ok() == status.ok());
  if (status.ok()) require(set->memory().members == members);
}

void require_safe_copy(std::string_view bytes) {
  std::size_t cell_bytes = 0;
  postgres::CopiedRows rows(2, [&](std::span<const postgres::Cell> cells) {
    require(cells.size() == 2);
    for (const postgres::Cell cell : cells) cell_bytes += cell.value_or("").size();
    return Status{};
  });
  (void)rows.read(bytes).ok();
  require(cell_bytes <= bytes.size());
}

}  // namespace
}  // namespace fcap

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fcap::require_same_members(bytes);
  fcap::require_safe_copy(bytes);
  return 0;
}
