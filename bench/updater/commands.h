#pragma once

#include <cstdint>
#include <string>

#include "updater/running_updater.h"

namespace fcap::bench {

/// What fcap-updater sends to Redis while it drains the topic, byte for byte. Without the last
/// compaction, which is not under way while events arrive: the updater is killed.
std::string record_commands(const Servers& servers, const std::string& topic, std::uint64_t events);

/// What Redis alone takes: sends recorded commands as fast as it reads them, from memory, until it
/// has executed all of them.
Numbers measure_commands(const Servers& servers, const std::string& commands, std::uint64_t events);

}  // namespace fcap::bench
