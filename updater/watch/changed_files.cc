#include "updater/watch/changed_files.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::updater {

ChangedFiles::ChangedFiles(Options options)
    : options_(std::move(options)), read_(stamps()), seen_(read_) {}

std::vector<base::FileStamp> ChangedFiles::stamps() const {
  std::vector<base::FileStamp> all;
  all.reserve(options_.files.size());
  for (const File& file : options_.files) all.push_back(base::stamp_of(file.path));
  return all;
}

std::string ChangedFiles::changed(const std::vector<base::FileStamp>& found) const {
  std::string settings;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == read_[i]) continue;
    settings += fmt::format("{}{}", settings.empty() ? "" : ", ", options_.files[i].setting);
  }
  return settings;
}

bool ChangedFiles::look(Clock::time_point now) {
  std::vector<base::FileStamp> found = stamps();
  if (found != seen_) {
    seen_ = std::move(found);
    tried_.reset();
    refusal_said_ = false;
    return false;
  }
  if (found == read_ || now < options_.not_before) return false;
  if (tried_ && now - *tried_ < kInterval) return false;
  tried_ = now;
  const Status usable = options_.check();
  if (stamps() != found) return false;  // what was checked is gone
  if (usable.ok()) {
    options_.log(LogLevel::kInfo,
                 fmt::format("changed, so a restart reads them: {}", changed(found)));
    return true;
  }
  if (!std::exchange(refusal_said_, true)) {
    options_.log(LogLevel::kWarning,
                 fmt::format("changed, but cannot be used yet, so what was read before stays in "
                             "use: {}: {}",
                             changed(found), usable.text()));
  }
  return false;
}

}  // namespace fcap::updater
