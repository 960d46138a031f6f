#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcap/log.h>
#include <fcap/status.h>

#include "base/file_stamp.h"

namespace fcap::updater {

/// Files that the process has read once, and when to read them again: they have changed, they are
/// as they were at the last look (a certificate is replaced before or after its key), and what they
/// hold now can be used. What cannot be used is logged once for each change, and tried again every
/// minute.
///
///     ChangedFiles files({.files = {{"ssl.key.location", "/etc/fcap/updater.key"}}, …});
///     if (files.look(ChangedFiles::Clock::now())) restart();  // every few seconds
///
/// Thread safety: none.
class ChangedFiles {
 public:
  using Clock = std::chrono::steady_clock;
  /// How often a change is tried, and how often it may be followed.
  static constexpr std::chrono::minutes kInterval{1};

  struct File {
    std::string setting;  ///< that names it, for the log
    std::string path;
  };
  struct Options {
    std::vector<File> files;
    /// Whether what the files hold now can be used; the text says why not. May block.
    std::function<Status()> check;
    /// No change is followed before this.
    Clock::time_point not_before = {};
    LogCallback log;
  };

  /// What the files hold at this moment counts as read.
  explicit ChangedFiles(Options options);

  /// Whether to read the files again now, which the log then says.
  [[nodiscard]] bool look(Clock::time_point now);

 private:
  [[nodiscard]] std::vector<base::FileStamp> stamps() const;
  [[nodiscard]] std::string changed(const std::vector<base::FileStamp>& found) const;

  const Options options_;
  const std::vector<base::FileStamp> read_;
  std::vector<base::FileStamp> seen_;  // at the last look
  std::optional<Clock::time_point> tried_;
  bool refusal_said_ = false;
};

}  // namespace fcap::updater
