#include <memory>
#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "sources/rule_refresher.h"
#include "updater/commands/commands.h"
#include "updater/commands/redis_parts.h"
#include "updater/compaction/sweep.h"
#include "updater/options/libraries.h"
#include "updater/options/part_options.h"
#include "updater/process/process_log.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kRulesWait{10};

// The rules as they are now; null when there is no source or it has none.
std::shared_ptr<const RuleSet> load_rules(const Settings& settings) {
  if (!has_rule_source(settings)) return nullptr;
  std::mutex mutex;
  std::shared_ptr<const RuleSet> loaded;
  RuleSourceOptions source = rule_source_options(settings);
  source.listen = false;
  sources::RuleRefresher refresher(
      std::move(source), rule_set_options(settings),
      [&](std::shared_ptr<const RuleSet> rules) {
        const std::lock_guard lock(mutex);
        loaded = std::move(rules);
      },
      log_callback("rules"));
  if (const Status status = refresher.start(kRulesWait); !status.ok()) {
    spdlog::warn("rules: {}; oversized records are not trimmed", status.text());
  }
  const std::lock_guard lock(mutex);
  return loaded;
}

}  // namespace

int sweep_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop) {
  auto redis = connect_redis(settings);
  if (!redis.ok()) {
    spdlog::error("{}", redis.status().text());
    return kExitFailure;
  }
  std::function<void(const SweepProgress&)> progress;
  if (!line.quiet) {
    progress = [](const SweepProgress& at) { fmt::print(stderr, "{}\n", progress_line(at)); };
  }
  Sweep sweep(*redis.value().client, *redis.value().store, sweep_options(settings),
              load_rules(settings), std::move(progress));
  const auto summary = sweep.run(stop);
  if (!summary.ok()) {
    spdlog::error("{}", summary.status().text());
    return kExitFailure;
  }
  fmt::print("{}\n", line.json ? summary_json(summary.value()) : summary_text(summary.value()));
  if (summary.value().failed > 0) {
    spdlog::error("{} records could not be compacted: Redis refused or did not answer",
                  summary.value().failed);
    return kExitFailure;
  }
  return summary.value().complete ? kExitOk : kExitStopped;
}

}  // namespace fcap::updater
