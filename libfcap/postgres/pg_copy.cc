#include "postgres/pg_copy.h"

#include <cstdint>

namespace fcap::postgres {
namespace {

// PostgreSQL's manual, COPY, "Binary Format". All numbers are big-endian.
constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0", 11);
constexpr std::size_t kFixedHeaderBytes = 19;
constexpr std::int64_t kEnd = -1;
constexpr std::int64_t kNull = -1;

Status unexpected() {
  return Status::error(StatusCode::kInternal, "PostgreSQL: unexpected bytes in binary COPY");
}

// False: there are too few bytes.
template <typename T>
bool take_number(std::string_view& rest, std::int64_t& value) {
  if (rest.size() < sizeof(T)) return false;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bits = bits << 8U | static_cast<unsigned char>(rest[i]);
  }
  value = static_cast<T>(bits);
  rest.remove_prefix(sizeof(T));
  return true;
}

}  // namespace

Status CopiedRows::read(std::string_view message) {
  if (!begun_) {
    if (!message.starts_with(kSignature) || message.size() < kFixedHeaderBytes) {
      return unexpected();
    }
    message.remove_prefix(kFixedHeaderBytes - sizeof(std::int32_t));
    std::int64_t extension_bytes = 0;
    (void)take_number<std::int32_t>(message, extension_bytes);
    if (extension_bytes < 0 || static_cast<std::size_t>(extension_bytes) > message.size()) {
      return unexpected();
    }
    message.remove_prefix(static_cast<std::size_t>(extension_bytes));
    begun_ = true;
  }
  while (!message.empty()) {
    if (Status status = take_row(message); !status.ok()) return status;
  }
  return {};
}

Status CopiedRows::take_row(std::string_view& rest) {
  std::int64_t columns = 0;
  if (ended_ || !take_number<std::int16_t>(rest, columns)) return unexpected();
  if (columns == kEnd) {
    ended_ = true;
    return {};
  }
  if (columns < 0 || static_cast<std::size_t>(columns) != columns_) return unexpected();
  cells_.clear();
  for (std::size_t i = 0; i < columns_; ++i) {
    std::int64_t length = 0;
    if (!take_number<std::int32_t>(rest, length)) return unexpected();
    if (length == kNull) {
      cells_.emplace_back();
      continue;
    }
    if (length < 0 || static_cast<std::size_t>(length) > rest.size()) return unexpected();
    cells_.emplace_back(rest.substr(0, static_cast<std::size_t>(length)));
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  return take_row_(cells_);
}

}  // namespace fcap::postgres
