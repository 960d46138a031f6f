#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_handle.h"

namespace fcap::base {
namespace {

Status cannot_read(const std::string& path, std::string_view why) {
  return Status::error(StatusCode::kNotFound,
                       std::string("cannot read ").append(path).append(": ").append(why));
}

std::string size_text(std::size_t bytes) {
  if (bytes % 1024 != 0) return std::to_string(bytes) + " bytes";
  const std::size_t kib = bytes / 1024;
  return kib % 1024 == 0 ? std::to_string(kib / 1024) + " MiB" : std::to_string(kib) + " KiB";
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  constexpr std::size_t kRoomMin = 4096;
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return cannot_read(path, std::generic_category().message(errno));
  // Room for all of it and one byte more from the start: a secret that grew would leave copies of
  // its beginning behind. Pipes and files of the kernel do not say their size.
  struct stat about {};
  const std::size_t size =
      ::fstat(file.fd(), &about) == 0 ? static_cast<std::size_t>(about.st_size) : 0;
  std::string bytes(std::min(std::max(size + 1, kRoomMin), bytes_max + 1), '\0');
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = ::read(file.fd(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, std::generic_category().message(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
    if (length > bytes_max) return cannot_read(path, "it is larger than " + size_text(bytes_max));
    if (length == bytes.size()) bytes.resize(std::min(2 * length, bytes_max + 1));
  }
  bytes.resize(length);
  return bytes;
}

}  // namespace fcap::base
