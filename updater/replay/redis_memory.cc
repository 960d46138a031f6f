#include "updater/replay/redis_memory.h"

#include <charconv>
#include <condition_variable>
#include <mutex>

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

class InfoRequest final : public redis::Request {
 public:
  void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kString) memory_ = parse_memory_info(reply.text);
  }
  void on_done(redis::TransportCode) noexcept override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  std::optional<RedisMemory> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    return memory_;
  }

 private:
  std::optional<RedisMemory> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace

std::optional<RedisMemory> parse_memory_info(std::string_view info) noexcept {
  const auto used = field(info, "used_memory");
  if (!used) return std::nullopt;
  return RedisMemory{*used, field(info, "maxmemory").value_or(0)};
}

std::optional<RedisMemory> redis_memory(redis::Client& client, std::chrono::milliseconds deadline) {
  InfoRequest request;
  redis::append_command(request.wire, {"INFO", "memory"});
  request.deadline = std::chrono::steady_clock::now() + deadline;
  client.submit(request);
  return request.wait();
}

}  // namespace fcap::updater
