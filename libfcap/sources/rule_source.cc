#include "sources/rule_source.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "rule_text/snapshot.h"

namespace fcap::sources {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

Result<std::optional<OfferedRules>> PostgresSource::look(const postgres::PgWait& wait,
                                                         const RuleSet* last) {
  const auto asked_at = steady_clock::now();
  rules::SharedSpecSink sink(last);
  Result<std::optional<LoadedTables>> loaded = load_if_changed(conninfo_, taken_, wait, sink);
  if (!loaded.ok()) return loaded.status();
  if (!loaded.value()) return std::optional<OfferedRules>();
  offered_ = std::move(loaded.value()->version);
  return std::optional(OfferedRules{sink.finish(offered_->version), *offered_,
                                    std::move(loaded.value()->quarantined), asked_at});
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

Result<std::optional<OfferedRules>> FileSource::look(const RuleSet* last) {
  // Before the bytes: a file replaced in between is then looked at again.
  if (Status status = stat_file(offered_); !status.ok()) return status;
  if (offered_ == taken_) return std::optional<OfferedRules>();
  Result<rule_text::SnapshotFile> file = rule_text::SnapshotFile::open(path_);
  if (!file.ok()) return file.status();
  offered_header_ = file.value().header();
  if (offered_header_ == taken_header_ && file.value().is_whole()) {
    taken_ = offered_;
    return std::optional<OfferedRules>();
  }
  rules::SharedSpecSink sink(last);
  Result<base::TableVersion> version = file.value().read(sink);
  if (!version.ok()) return version.status();
  return std::optional(OfferedRules{
      sink.finish(version.value().version), std::move(version).value(), {}, current_at_});
}

void FileSource::taken() {
  taken_ = offered_;
  taken_header_ = offered_header_;
}

}  // namespace fcap::sources
