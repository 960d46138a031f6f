#include "updater/replay/redis_memory.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "redis/blocking_call.h"
#include "redis/slot_tags.h"

namespace fcap::updater {
namespace {

std::optional<std::uint64_t> field(std::string_view info, std::string_view name) noexcept {
  std::size_t at = 0;
  while (at < info.size()) {
    const std::size_t end = std::min(info.find('\n', at), info.size());
    const std::string_view line = info.substr(at, end - at);
    at = end + 1;
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ':') continue;
    const std::string_view text = line.substr(name.size() + 1);
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && stop != text.data()) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RedisMemory> parse_memory_info(std::string_view info) noexcept {
  const auto used = field(info, "used_memory");
  if (!used) return std::nullopt;
  return RedisMemory{*used};
}

std::optional<RedisMemory> redis_memory(redis::Client& client, std::chrono::milliseconds deadline) {
  std::vector<std::string> keys;
  if (!client.is_cluster()) keys.emplace_back();
  for (const redis::ClusterShard& shard : client.shards()) {
    keys.push_back(redis::tag_of_slot(shard.slots.front().first));
  }
  std::vector<redis::BlockingCall> calls;
  calls.reserve(keys.size());
  for (const std::string& key : keys) calls.push_back({.words = {"INFO", "memory"}, .key = key});
  std::optional<RedisMemory> most;
  redis::call_and_wait(client, calls, deadline, [&](std::size_t, const redis::Reply& reply) {
    if (reply.kind != redis::Reply::Kind::kString) return;
    const auto memory = parse_memory_info(reply.text);
    if (memory && (!most || most->used_bytes < memory->used_bytes)) most = memory;
  });
  return most;
}

}  // namespace fcap::updater
