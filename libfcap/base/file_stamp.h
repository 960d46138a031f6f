#pragma once

#include <cstdint>
#include <string>

namespace fcap::base {

/// What changes when a file is written or replaced by another.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t node = 0;
  std::int64_t bytes = -1;
  std::int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

/// A symbolic link is followed. All files that cannot be found have the same stamp.
[[nodiscard]] FileStamp stamp_of(const std::string& path) noexcept;

/// Whether accounts that are neither its owner nor of its group may read the file: for those that
/// hold secrets. False if there is no such file.
[[nodiscard]] bool is_readable_by_all(const std::string& path) noexcept;

}  // namespace fcap::base
