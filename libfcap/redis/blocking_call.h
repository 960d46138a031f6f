#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "redis/client.h"

namespace fcap::redis {

/// One command and the key whose slot it goes to (empty: any).
struct BlockingCall {
  std::vector<std::string_view> words;
  std::string_view key;
};

/// Sends commands and waits for all answers; `on_reply` is called with the command's index, from
/// one thread at a time. Returns a code other than kOk if any command had one. Not for hot paths.
TransportCode call_and_wait(Client& client, std::span<const BlockingCall> calls,
                            std::chrono::milliseconds deadline,
                            const std::function<void(std::size_t, const Reply&)>& on_reply);

}  // namespace fcap::redis
