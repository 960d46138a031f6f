#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "redis/client.h"

namespace fcap::updater {

/// What a Redis server says of its memory.
struct RedisMemory {
  std::uint64_t used_bytes = 0;
};

/// Reads the answer of INFO memory; none: it does not say.
[[nodiscard]] std::optional<RedisMemory> parse_memory_info(std::string_view info) noexcept;

/// Asks a server, and waits for the answer; none: there was none by the deadline. In a cluster all
/// masters are asked, and the one that uses most counts.
[[nodiscard]] std::optional<RedisMemory> redis_memory(redis::Client& client,
                                                      std::chrono::milliseconds deadline);

}  // namespace fcap::updater
