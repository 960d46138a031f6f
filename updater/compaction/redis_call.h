#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "redis/client.h"

namespace fcap::updater {

/// One command and the key whose slot it goes to (empty: any).
struct RedisCall {
  std::vector<std::string_view> words;
  std::string_view key;
};

/// Sends commands and waits for all answers; `on_reply` is called with the command's index, from
/// one thread at a time. Gives the first code that is not kOk. For what is no hot path: the sweep.
redis::TransportCode call_redis(
    redis::Client& client, std::span<const RedisCall> calls, std::chrono::milliseconds deadline,
    const std::function<void(std::size_t, const redis::Reply&)>& on_reply);

}  // namespace fcap::updater
