#include <utility>

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "events/event_decoder.h"
#include "updater/commands/commands.h"
#include "updater/commands/redis_parts.h"
#include "updater/options/part_options.h"
#include "updater/options/signatures.h"
#include "updater/process/process_log.h"
#include "updater/replay/canary.h"

namespace fcap::updater {
namespace {

// With --resume a range in which nothing is read is no mistake: all of it may have been replayed
// before.
bool names_a_range(const ReplayFlags& flags) {
  return !flags.resume && (flags.from_time || flags.to_time || flags.from_offset.everywhere ||
                           flags.to_offset.everywhere || !flags.from_offset.of_partition.empty() ||
                           !flags.to_offset.of_partition.empty());
}

}  // namespace

int exit_code_of(ReplaySummary::ReplayEnd end) noexcept {
  switch (end) {
    case ReplaySummary::ReplayEnd::kComplete:
      return kExitOk;
    case ReplaySummary::ReplayEnd::kStopped:
      return kExitStopped;
    case ReplaySummary::ReplayEnd::kMemory:
      return kExitMemory;
    case ReplaySummary::ReplayEnd::kLost:
      return kExitLost;
  }
  return kExitFailure;
}

int replay_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop) {
  if (line.replay.group_id == settings.kafka.group_id) {
    fmt::print(stderr, "--group: must not be the updater's, {}\n", settings.kafka.group_id);
    return kExitUsage;
  }
  auto signatures = make_signature_check(settings.signatures, log_callback("signatures"));
  if (!signatures.ok()) {
    spdlog::error("{}", signatures.status().text());
    return kExitUsage;
  }
  auto redis = connect_redis(settings);
  if (!redis.ok()) {
    spdlog::error("{}", redis.status().text());
    return kExitFailure;
  }
  const auto decoder = events::make_json_event_decoder();
  ReplayOptions options = replay_options(settings, line.replay);
  options.intake.signatures = std::move(signatures).value();
  ReplayParts parts;
  parts.store = redis.value().store.get();
  parts.decoder = decoder.get();
  parts.memory = [client = redis.value().client, deadline = options.write.deadline] {
    return redis_memory(*client, deadline);
  };
  if (!line.quiet) {
    parts.progress = [](const ReplayProgress& progress) {
      fmt::print(stderr, "{}\n", progress_line(progress));
    };
  }
  parts.log = log_callback("replay");
  Canary canary(redis.value().client, options);
  parts.lost = [&canary] {
    if (canary.alive()) return false;
    (void)canary.plant();  // if that fails, the next look finds it missing again
    return true;
  };
  auto replay = Replay::create(std::move(options), std::move(parts));
  if (!replay.ok()) {
    spdlog::error("{}", replay.status().text());
    return replay.status().code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  if (!canary.plant()) {
    spdlog::error("cannot write the key by which a replay notices that Redis has lost data: {}",
                  canary.why());
    return kExitFailure;
  }
  const auto summary = replay.value()->run(stop);
  if (!summary.ok()) {
    spdlog::error("{}", summary.status().text());
    return summary.status().code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  fmt::print("{}\n", line.json ? summary_json(summary.value()) : summary_text(summary.value()));
  int code = exit_code_of(summary.value().end);
  // A range that was mistyped must not look like a replay that found nothing to do.
  if (code == kExitOk && summary.value().messages_read == 0 && names_a_range(line.replay)) {
    spdlog::error(
        "nothing was replayed: the topic holds no message in the range given (--from, --to, "
        "--from-offset, --to-offset)");
    code = kExitFailure;
  }
  if (code == kExitLost) {
    spdlog::error(
        "Redis was repeatedly emptied or reconnected during the replay: repair Redis, then run the "
        "replay again from its beginning; what has been restored stays");
  }
  return code;
}

}  // namespace fcap::updater
