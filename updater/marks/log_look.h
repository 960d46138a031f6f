#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fcap/status.h>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// The result of a look at a partition's log.
struct LogLook {
  std::string cluster;    ///< as cluster_word() has it; empty: not known
  std::int64_t low = 0;   ///< the first offset that exists
  std::int64_t high = 0;  ///< the one after the last
  /// For each offset that was asked for, the first message at or after it. Empty if the log has no
  /// such message, or if the offset is not between `low` and `high`.
  std::vector<std::optional<LogPoint>> found = {};
};

/// Looks at logs asynchronously. Never blocks its caller.
///
/// Thread safety: one thread calls it.
class LogLooks {
 public:
  struct LookQuestion {
    std::int32_t partition = 0;
    std::uint64_t ticket = 0;
    std::vector<std::int64_t> offsets = {};
  };
  struct LookAnswer {
    std::int32_t partition = 0;
    std::uint64_t ticket = 0;
    Status status = {};  ///< not ok: the look failed
    LogLook look = {};
  };

  /// Each question is answered once, within some seconds.
  virtual void ask(LookQuestion question) = 0;
  /// The next answer, if there is one.
  virtual std::optional<LookAnswer> take() = 0;

 protected:
  ~LogLooks() = default;
};

/// Whether a log is the one that was read before.
struct LogVerdict {
  enum class LogMatch : std::uint8_t {
    kSame,
    kUnknown,   ///< every message that would identify it is gone; nothing shows another log
    kUnproven,  ///< judge_mark() only: the mark names no message, though the log has older ones
    kAnother,
  };
  LogMatch is = LogMatch::kSame;
  std::string why = {};                 ///< not kSame: for people
  std::optional<LogPoint> newest = {};  ///< kSame: the last of the messages that were found again
  /// The messages by which the log was recognized: those that were found again (kSame), or none
  /// (kUnknown). A mark that names one of them is about the same log.
  std::vector<LogPoint> shown_by = {};
};

/// What is known of the log that was read.
struct KnownLog {
  std::string cluster;
  std::vector<LogPoint> points;  ///< messages of it, ascending; two may claim the same offset
  std::int64_t position = 0;     ///< every message below it was in the log
};

/// `look` was asked for the offsets of `known.points`, in this order. Pure.
[[nodiscard]] LogVerdict judge_log(const KnownLog& known, const LogLook& look);

/// The same for a mark that was found in Redis. kUnproven: it names no message, although the log
/// has some below its position. It may be about a former log that was at least as long, and have
/// come back with a snapshot of Redis. Pure.
[[nodiscard]] LogVerdict judge_mark(const KnownLog& mark, const LogLook& look);

/// The messages that identify a mark's log.
[[nodiscard]] std::vector<LogPoint> points_of(const LogIdentity& log);

}  // namespace fcap::updater
