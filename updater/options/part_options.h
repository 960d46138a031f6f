#pragma once

#include "redis/config_record.h"
#include "updater/compaction/compactor.h"
#include "updater/compaction/sweep.h"
#include "updater/http/http_server.h"
#include "updater/pipeline/updater.h"
#include "updater/replay/flags.h"
#include "updater/replay/replay.h"
#include "updater/settings/settings.h"
#include "updater/watch/topic_watch.h"

namespace fcap::updater {

/// What the updater's parts are given of the configuration and of replay's flags. What libfcap and
/// the wrappers are given: options/libraries.h, which `fcap` shares.
[[nodiscard]] UpdaterOptions updater_options(const Settings& settings);
[[nodiscard]] redis::ConfigRecord config_record(const Settings& settings);
/// Decodes messages as the updater does. Not thread-safe.
[[nodiscard]] NewestEvent newest_event_by(std::shared_ptr<events::EventDecoder> decoder);
[[nodiscard]] TopicWatchOptions watch_options(const Settings& settings);
[[nodiscard]] Compactor::Options compactor_options(const Settings& settings);
[[nodiscard]] HttpServer::Options http_options(const Settings& settings);
[[nodiscard]] SweepOptions sweep_options(const Settings& settings);
[[nodiscard]] ReplayOptions replay_options(const Settings& settings, const ReplayFlags& flags);

}  // namespace fcap::updater
