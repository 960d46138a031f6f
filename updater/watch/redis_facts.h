#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "updater/watch/finding.h"

namespace fcap::updater {

/// What a Redis server reports about itself; values that it does not report are empty.
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

/// What is wrong with the server, and what to change; if nothing is wrong, a line with its version
/// and eviction policy.
[[nodiscard]] Findings judge_redis(const RedisFacts& facts);

}  // namespace fcap::updater
