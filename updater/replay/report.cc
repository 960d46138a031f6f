#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "updater/replay/replay.h"

namespace fcap::updater {
namespace {

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string duration(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::uint64_t per_second(std::uint64_t count, std::chrono::milliseconds time) {
  return count * 1000 / static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 1));
}

std::string_view word(ReplaySummary::ReplayEnd end) noexcept {
  switch (end) {
    case ReplaySummary::ReplayEnd::kComplete:
      return "complete";
    case ReplaySummary::ReplayEnd::kStopped:
      return "stopped";
    case ReplaySummary::ReplayEnd::kMemory:
      return "memory";
    case ReplaySummary::ReplayEnd::kLost:
      return "lost";
  }
  return "unknown";
}

}  // namespace

std::string progress_line(const ReplayProgress& progress) {
  const std::uint64_t percent =
      progress.messages_total == 0 ? 100 : progress.messages_read * 100 / progress.messages_total;
  return fmt::format("{} of {} messages ({} %), {}/s, {}; added {}, already there {}",
                     grouped(progress.messages_read), grouped(progress.messages_total), percent,
                     grouped(per_second(progress.messages_read, progress.elapsed)),
                     progress.left ? duration(*progress.left) + " left" : "time left unknown",
                     grouped(progress.counts.added), grouped(progress.counts.already_there));
}

std::string summary_text(const ReplaySummary& summary) {
  const ReplayCounts& counts = summary.counts;
  std::string text;
  switch (summary.end) {
    case ReplaySummary::ReplayEnd::kComplete:
      text = summary.messages_read == 0 ? "nothing was replayed: there was no message to read\n"
             : summary.changed_nothing()
                 ? "replay complete: nothing was missing, nothing was changed\n"
                 : "replay complete\n";
      break;
    case ReplaySummary::ReplayEnd::kStopped:
      text = "replay stopped before its end; continue from here with --resume\n";
      break;
    case ReplaySummary::ReplayEnd::kMemory:
      text =
          "replay stopped: Redis uses more memory than allowed; continue from here with --resume\n";
      break;
    case ReplaySummary::ReplayEnd::kLost:
      text = "replay aborted: Redis repeatedly lost what was written\n";
      break;
  }
  text += fmt::format("  messages read    {} in {} ({}/s)\n", grouped(summary.messages_read),
                      duration(summary.elapsed),
                      grouped(per_second(summary.messages_read, summary.elapsed)));
  text += fmt::format("  events added     {} in {} records\n", grouped(counts.added),
                      grouped(counts.records_changed));
  text += fmt::format("  already there    {}\n", grouped(counts.already_there));
  text += fmt::format(
      "  left out         {} too old, {} without a user id, {} not events, {} erased, {} trimmed "
      "for size\n",
      grouped(summary.left_out.too_old), grouped(summary.left_out.null_user),
      grouped(summary.left_out.rejected), grouped(counts.erased), grouped(counts.trimmed));
  if (counts.erasures_added + counts.erasures_already_there > 0) {
    text += fmt::format("  erasures         {} added, {} already there\n",
                        grouped(counts.erasures_added), grouped(counts.erasures_already_there));
  }
  if (counts.records_unreadable > 0) {
    text += fmt::format("  unreadable       {} records, left as they are\n",
                        grouped(counts.records_unreadable));
  }
  return text;
}

std::string summary_json(const ReplaySummary& summary) {
  const ReplayCounts& counts = summary.counts;
  nlohmann::ordered_json json;
  json["end"] = word(summary.end);
  json["changed_nothing"] = summary.changed_nothing();
  json["messages_read"] = summary.messages_read;
  json["added"] = counts.added;
  json["already_there"] = counts.already_there;
  json["rejected"] = summary.left_out.rejected;
  json["too_old"] = summary.left_out.too_old;
  json["null_user"] = summary.left_out.null_user;
  json["erased"] = counts.erased;
  json["trimmed"] = counts.trimmed;
  json["erasures_added"] = counts.erasures_added;
  json["erasures_already_there"] = counts.erasures_already_there;
  json["records_changed"] = counts.records_changed;
  json["records_unreadable"] = counts.records_unreadable;
  json["conflicts"] = counts.conflicts;
  json["retries"] = counts.retries;
  json["elapsed_ms"] = summary.elapsed.count();
  for (const auto& [partition, offset] : summary.next_offsets) {
    json["next_offsets"][std::to_string(partition)] = offset;
  }
  return json.dump();
}

}  // namespace fcap::updater
