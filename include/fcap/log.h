#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <fcap/cplusplus.h>

namespace fcap {

/// How serious a log line is.
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Receives what there is to log: one line, without a line break or other control characters,
/// whatever it quotes. May be called from any fcap thread, from several at once; must not block for
/// long or throw. Empty: nothing is logged.
using LogCallback = std::function<void(LogLevel, std::string_view)>;

}  // namespace fcap
