#include "updater/replay/redis_memory.h"

#include <algorithm>
#include <charconv>

#include "redis/blocking_call.h"

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
  const redis::BlockingCall info{.words = {"INFO", "memory"}, .key = {}};
  std::optional<RedisMemory> memory;
  redis::call_and_wait(client, {&info, 1}, deadline, [&](std::size_t, const redis::Reply& reply) {
    if (reply.kind == redis::Reply::Kind::kString) memory = parse_memory_info(reply.text);
  });
  return memory;
}

}  // namespace fcap::updater
