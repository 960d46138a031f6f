#include "base/file_stamp.h"

#include <sys/stat.h>

namespace fcap::base {

FileStamp stamp_of(const std::string& path) noexcept {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return {};
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return {found.st_dev, found.st_ino, found.st_size,
          found.st_ctim.tv_sec * kNsPerSecond + found.st_ctim.tv_nsec};
}

bool is_readable_by_all(const std::string& path) noexcept {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && (found.st_mode & S_IROTH) != 0;
}

}  // namespace fcap::base
