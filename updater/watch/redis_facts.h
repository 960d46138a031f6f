#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "updater/watch/finding.h"

namespace fcap::updater {

/// What a Redis server says of itself; what it does not say is empty.
struct RedisFacts {
  std::string version;
  std::string role;
  std::string eviction_policy;
  std::optional<std::uint64_t> memory_max_bytes;  ///< 0: no limit
  std::optional<std::uint64_t> evicted_keys;      ///< since the server was started

  /// Whether a full server may delete users' records.
  [[nodiscard]] bool may_evict() const noexcept {
    return !eviction_policy.empty() && eviction_policy != "noeviction";
  }
};

/// Reads the answer of INFO, with whatever sections it has.
[[nodiscard]] RedisFacts parse_redis_info(std::string_view info);

/// What is wrong with it, naming what to change; a line that says what was found where nothing is.
[[nodiscard]] Findings judge_redis(const RedisFacts& facts);

}  // namespace fcap::updater
