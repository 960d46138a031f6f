#include "updater/replay_command.h"

#include <random>
#include <utility>

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "events/event_decoder.h"
#include "updater/log.h"
#include "updater/pipeline/from_settings.h"
#include "updater/replay/canary.h"
#include "updater/replay/replay.h"
#include "updater/run_command.h"

namespace fcap::updater {
namespace {

ReplayOptions replay_options(const Settings& settings, const ReplayFlags& flags) {
  UpdaterOptions live = updater_options(settings);
  ReplayOptions options;
  options.consumer = std::move(live.consumer);
  options.consumer.group_id =
      flags.group_id.empty() ? settings.kafka.group_id + "-replay" : flags.group_id;
  // Static membership would throw the updater of that name out of its place.
  options.consumer.group_instance_id.clear();
  options.intake = std::move(live.intake);
  options.write.retention = settings.ledger.retention;
  options.write.deadline = settings.pipeline.redis_deadline;
  options.write.backoff_min = settings.pipeline.retry_backoff_min;
  options.write.backoff_max = settings.pipeline.retry_backoff_max;
  options.write.jitter_seed = std::random_device{}();
  options.key_prefix = settings.ledger.key_prefix;
  options.partitions = flags.partitions;
  options.from_time = flags.from_time;
  options.to_time = flags.to_time;
  options.from_offset = flags.from_offset.everywhere;
  options.to_offset = flags.to_offset.everywhere;
  options.from_offsets = flags.from_offset.of_partition;
  options.to_offsets = flags.to_offset.of_partition;
  options.resume = flags.resume;
  options.messages_per_second = flags.messages_per_second;
  options.redis_bytes_max = static_cast<std::uint64_t>(flags.redis_bytes_max);
  options.batch_messages_max = static_cast<std::size_t>(settings.pipeline.batch_events_max);
  return options;
}

std::string canary_key(const Settings& settings, const ReplayFlags& flags) {
  return fmt::format("{}:mark:{{0}}:{}:{}:replay", settings.ledger.key_prefix,
                     flags.group_id.empty() ? settings.kafka.group_id + "-replay" : flags.group_id,
                     settings.kafka.topic);
}

}  // namespace

int replay_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop) {
  if (line.replay.group_id == settings.kafka.group_id) {
    fmt::print(stderr, "--group: must not be the updater's, {}\n", settings.kafka.group_id);
    return kExitUsage;
  }
  auto redis = connect_redis(settings);
  if (!redis.ok()) {
    spdlog::error("{}", redis.status().text());
    return kExitFailure;
  }
  const auto decoder = events::make_json_event_decoder();
  ReplayParts parts;
  parts.store = redis.value().store.get();
  parts.decoder = decoder.get();
  parts.memory = [client = redis.value().client, deadline = settings.pipeline.redis_deadline] {
    return redis_memory(*client, deadline);
  };
  if (!line.quiet) {
    parts.progress = [](const ReplayProgress& progress) {
      fmt::print(stderr, "{}\n", progress_line(progress));
    };
  }
  parts.log = log_callback("replay");
  auto replay = Replay::create(replay_options(settings, line.replay), std::move(parts));
  if (!replay.ok()) {
    spdlog::error("{}", replay.status().text());
    return replay.status().code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  Canary canary(redis.value().client, canary_key(settings, line.replay),
                settings.pipeline.redis_deadline);
  if (!canary.plant()) {
    spdlog::error("Redis does not take a key to watch it by: {}", canary.why());
    return kExitFailure;
  }
  const auto summary = replay.value()->run(stop);
  if (!summary.ok()) {
    spdlog::error("{}", summary.status().text());
    return summary.status().code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  fmt::print("{}\n", line.json ? summary_json(summary.value()) : summary_text(summary.value()));
  const int code = exit_code(summary.value());
  if (code != kExitOk || canary.alive()) return code;
  spdlog::error(
      "Redis was reconnected or emptied during the replay and may have lost some of it: run the "
      "replay again, from its beginning; what is there stays as it is");
  return kExitLost;
}

}  // namespace fcap::updater
