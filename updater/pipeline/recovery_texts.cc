#include "updater/pipeline/recovery_texts.h"

#include <iterator>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

// Why a partition is read again, for people.
std::string why_again(const std::optional<Claim>& found, const std::optional<Claim>& written) {
  if (!written) return "Redis was reconnected before it had confirmed a mark";
  if (!found) {
    return fmt::format("Redis has lost data (no mark where offset {} was written)",
                       describe(written));
  }
  if (found->position < written->position) {
    return fmt::format("Redis has lost data (a mark of offset {} where offset {} was written)",
                       describe(found), describe(written));
  }
  return fmt::format("Redis was reconnected and may have lost data (its mark: offset {})",
                     describe(found));
}

}  // namespace

std::string text_of_recovery(std::int32_t id, const MarkedPartition& m, const RecoveryPlan& plan,
                             std::int64_t next) {
  std::string text = fmt::format("{}: partition {} is read again from {}, {} messages",
                                 why_again(m.claim_of(m.mark->found()), m.claimed()), id,
                                 plan.read_from, next - plan.read_from);
  if (!plan.gaps.empty()) {
    fmt::format_to(std::back_inserter(text),
                   "; meanwhile {} offsets before it, from {} on, are read again, the newest first",
                   offsets_in(plan.gaps), plan.gaps.front().from);
  }
  return text;
}

std::string text_of_start(std::int32_t id, const MarkedPartition& m,
                          std::optional<std::int64_t> committed, const RecoveryPlan& plan) {
  std::string text =
      fmt::format("partition {}: mark {}, committed {}; reading from {}", id,
                  describe(m.claim_of(m.mark->found())), describe(committed), plan.read_from);
  if (!plan.gaps.empty()) {
    fmt::format_to(std::back_inserter(text), ", and {} offsets before it meanwhile",
                   offsets_in(plan.gaps));
  }
  return text;
}

std::string text_of_no_mark(std::int32_t id, std::optional<std::int64_t> committed,
                            std::int64_t offset) {
  return fmt::format(
      "partition {}: no mark in Redis (committed: {}); reading from the start of "
      "retention, offset {}",
      id, describe(committed), offset);
}

UnbelievedMark why_unbelieved(std::int32_t id, const MarkedPartition& m, const LogVerdict& log,
                              bool doubted, std::int64_t offset) {
  using Is = LogVerdict::LogMatch;
  const std::int64_t position = m.mark->found()->position;
  if (log.is == Is::kAnother) {
    return {LogLevel::kError, true,
            fmt::format("partition {}: this is not the log that was read up to the mark, {}: {}; "
                        "reading from the start of retention, offset {}",
                        id, position, log.why, offset)};
  }
  if (doubted) {
    return {LogLevel::kWarning, false,
            fmt::format("partition {}: records may be missing below its mark, {}; reading from the "
                        "start of retention, offset {}",
                        id, position, offset)};
  }
  if (log.is == Is::kUnproven) {
    return {LogLevel::kWarning, false,
            fmt::format("partition {}: its mark, {}, may be about another log: {}; reading from "
                        "the start of retention, offset {}",
                        id, position, log.why, offset)};
  }
  return {LogLevel::kWarning, true,
          fmt::format("partition {}: mark {}, but the group has committed no offset: the topic was "
                      "recreated, this is another cluster, or the offsets have expired; reading "
                      "from the start of retention, offset {}",
                      id, describe(m.claim_of(m.mark->found())), offset)};
}

}  // namespace fcap::updater
