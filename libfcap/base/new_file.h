#pragma once

#include <functional>
#include <string>

#include "base/file_handle.h"

namespace fcap::base {

/// A file that takes the place of another at once: it is written under a name beside it, and
/// renamed when it is whole. The name is one that nobody else has: the file is made by this call or
/// not at all, so that processes that share a directory, whatever their ids are, never write the
/// same one, and no pipe or link of that name is opened. Destroyed before replace() has succeeded,
/// it is removed; a process that is killed leaves a file "<path>.new.…" behind.
///
/// Thread safety: one thread at a time.
class NewFile {
 public:
  /// What a name ends in; empty: random digits.
  using Suffix = std::function<std::string()>;

  /// The process's umask says who else may read it; nobody else may ever write it. Check open().
  explicit NewFile(std::string path, const Suffix& suffix = {});
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] bool open() const noexcept { return file_.open(); }
  [[nodiscard]] int fd() const noexcept { return file_.fd(); }
  /// Why it could not be made: as errno says it.
  [[nodiscard]] int error() const noexcept { return error_; }

  /// Puts it on disk and in the place of `path`. 0, or the error as errno says it.
  [[nodiscard]] int replace();

 private:
  const std::string path_;
  std::string temporary_;  // empty: renamed or removed
  FileHandle file_;
  int error_ = 0;
};

}  // namespace fcap::base
