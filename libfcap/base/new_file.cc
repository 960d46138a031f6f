#include "base/new_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

namespace fcap::base {
namespace {

constexpr int kTriesMax = 16;

// We do not use mkostemp(), because only their owner may read its files, whatever the umask says.
std::string random_suffix() {
  std::uint64_t number = 0;
  // Without random bytes an address has to do: if the name is taken, another one is tried.
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = reinterpret_cast<std::uintptr_t>(&number) ^ static_cast<std::uint64_t>(::getpid());
  }
  char digits[17] = {};
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

// A rename survives a crash only once its directory is on disk.
void sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const FileHandle handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.open()) ::fsync(handle.fd());
}

}  // namespace

NewFile::NewFile(std::string path, const Suffix& suffix) : path_(std::move(path)) {
  for (int i = 0; i < kTriesMax && !file_.open(); ++i) {
    temporary_ = path_ + ".new." + (suffix ? suffix() : random_suffix());
    file_ = FileHandle(
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    error_ = file_.open() ? 0 : errno;
    if (error_ != EEXIST) break;
  }
  if (!file_.open()) temporary_.clear();
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

int NewFile::replace() {
  if (::fsync(file_.fd()) != 0) return errno;
  file_.close();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno;
  temporary_.clear();
  sync_directory_of(path_);
  return 0;
}

}  // namespace fcap::base
