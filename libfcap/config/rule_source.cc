#include "config/rule_source.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "config/snapshot.h"

namespace fcap::config {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

Result<std::optional<OfferedRules>> PostgresSource::look(const PgWait& wait) {
  const auto asked_at = steady_clock::now();
  Result<std::optional<LoadedRules>> loaded = load_if_changed(conninfo_, taken_, wait);
  if (!loaded.ok()) return loaded.status();
  if (!loaded.value()) return std::optional<OfferedRules>();
  offered_ = std::move(loaded.value()->version);
  return std::optional(
      OfferedRules{std::move(loaded.value()->spec), offered_->changed_at, asked_at});
}

Status FileSource::stat_file(Identity& identity) {
  struct stat about {};
  if (::stat(path_.c_str(), &about) != 0) {
    const int error = errno;
    return Status::error(error == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable,
                         "snapshot " + path_ + ": " + std::generic_category().message(error), true);
  }
  identity = {about.st_dev, about.st_ino, about.st_size, about.st_mtim.tv_sec,
              about.st_mtim.tv_nsec};
  const auto modified = seconds{about.st_mtim.tv_sec} + nanoseconds{about.st_mtim.tv_nsec};
  const auto age = system_clock::now().time_since_epoch() - modified;
  current_at_ = steady_clock::now() - std::max(age, nanoseconds{0});
  return {};
}

Result<std::optional<OfferedRules>> FileSource::look() {
  // Before the bytes: a file replaced in between is then looked at again.
  if (Status status = stat_file(offered_); !status.ok()) return status;
  if (offered_ == taken_) return std::optional<OfferedRules>();
  Result<SnapshotFile> file = SnapshotFile::open(path_);
  if (!file.ok()) return file.status();
  offered_header_ = file.value().header();
  if (offered_header_ == taken_header_ && file.value().is_whole()) {
    taken_ = offered_;
    return std::optional<OfferedRules>();
  }
  Result<Snapshot> snapshot = file.value().read();
  if (!snapshot.ok()) return snapshot.status();
  return std::optional(OfferedRules{std::move(snapshot.value().spec),
                                    std::move(snapshot.value().changed_at), current_at_});
}

void FileSource::taken() {
  taken_ = offered_;
  taken_header_ = offered_header_;
}

}  // namespace fcap::config
