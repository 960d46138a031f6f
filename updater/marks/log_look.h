#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fcap/status.h>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// What a look at a partition's log has shown.
struct LogLook {
  std::string cluster;    ///< as cluster_word() has it; empty: not known
  std::int64_t low = 0;   ///< the first offset there is
  std::int64_t high = 0;  ///< the one after the last
  /// For each offset that was asked for, the first message at or after it. Empty if the log has no
  /// such message, or if the offset is not between `low` and `high`.
  std::vector<std::optional<LogPoint>> found = {};
};

/// Looks at logs, and tells later. Never blocks its caller.
///
/// Thread safety: one thread calls it.
class LogLooks {
 public:
  struct Question {
    std::int32_t partition = 0;
    std::uint64_t ticket = 0;
    std::vector<std::int64_t> offsets = {};
  };
  struct Answer {
    std::int32_t partition = 0;
    std::uint64_t ticket = 0;
    Status status = {};  ///< not ok: there was no look
    LogLook look = {};
  };

  /// Each question is answered once, within some seconds.
  virtual void ask(Question question) = 0;
  /// The next answer, if there is one.
  virtual std::optional<Answer> take() = 0;

 protected:
  ~LogLooks() = default;
};

/// Whether a log is the one that somebody has read before.
struct LogVerdict {
  enum class Is : std::uint8_t {
    kSame,
    kUnknown,  ///< every message that it would be known by is gone; nothing speaks against it
    kAnother,
  };
  Is is = Is::kSame;
  std::string why = {};                 ///< not kSame: for people
  std::optional<LogPoint> newest = {};  ///< kSame: the last of the messages that were found again
};

/// What was known of the log that was read.
struct KnownLog {
  std::string cluster;
  std::vector<LogPoint> points;  ///< messages delivered from it, ascending
  std::int64_t position = 0;     ///< every message below it was in the log
};

/// `look` was asked for the offsets of `known.points`, in this order. Pure.
[[nodiscard]] LogVerdict judge_log(const KnownLog& known, const LogLook& look);

/// The messages that a mark's log is known by.
[[nodiscard]] std::vector<LogPoint> points_of(const LogIdentity& log);

}  // namespace fcap::updater
