#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fcap/log.h>

#include "updater/marks/log_look.h"
#include "updater/pipeline/marked_partition.h"
#include "updater/pipeline/rewind.h"

namespace fcap::updater {

// What a MarkRecovery says in the log.

/// Some of the partition is read again. `next`: the first offset that was not read yet.
[[nodiscard]] std::string text_of_recovery(std::int32_t id, const MarkedPartition& m,
                                           const RecoveryPlan& plan, std::int64_t next);
/// Reading begins by the mark.
[[nodiscard]] std::string text_of_start(std::int32_t id, const MarkedPartition& m,
                                        std::optional<std::int64_t> committed,
                                        const RecoveryPlan& plan);
/// Reading begins at the start of the retention, at `offset`: there is no mark.
[[nodiscard]] std::string text_of_no_mark(std::int32_t id, std::optional<std::int64_t> committed,
                                          std::int64_t offset);
/// Reading begins at the start of the retention, at `offset`, although there is a mark. `doubted`:
/// because records may be missing below it.
struct UnbelievedMark {
  LogLevel level = LogLevel::kWarning;
  bool is_other_log = true;  ///< or seems to be: nothing is missing from Redis
  std::string text;
};
[[nodiscard]] UnbelievedMark why_unbelieved(std::int32_t id, const MarkedPartition& m,
                                            const LogVerdict& log, bool doubted,
                                            std::int64_t offset);

}  // namespace fcap::updater
