#include "updater/compaction/redis_call.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace fcap::updater {
namespace {

struct Gathering {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t outstanding = 0;
  redis::TransportCode code = redis::TransportCode::kOk;
  const std::function<void(std::size_t, const redis::Reply&)>* on_reply = nullptr;
};

class CallRequest final : public redis::Request {
 public:
  void on_reply(std::uint32_t /*command*/, const redis::Reply& reply) noexcept override {
    const std::lock_guard lock(gathering->mutex);
    (*gathering->on_reply)(index, reply);
  }
  void on_done(redis::TransportCode code) noexcept override {
    // Under the lock to the end: the waiter owns everything here.
    const std::lock_guard lock(gathering->mutex);
    if (code != redis::TransportCode::kOk) gathering->code = code;
    if (--gathering->outstanding == 0) gathering->changed.notify_all();
  }
  Gathering* gathering = nullptr;
  std::size_t index = 0;
};

void append_words(std::string& wire, std::span<const std::string_view> words) {
  wire += '*' + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    wire += '$' + std::to_string(word.size()) + "\r\n";
    wire.append(word).append("\r\n");
  }
}

}  // namespace

redis::TransportCode call_redis(
    redis::Client& client, std::span<const RedisCall> calls, std::chrono::milliseconds deadline,
    const std::function<void(std::size_t, const redis::Reply&)>& on_reply) {
  Gathering gathering;
  gathering.on_reply = &on_reply;
  gathering.outstanding = calls.size();
  std::vector<CallRequest> requests(calls.size());
  const auto due = std::chrono::steady_clock::now() + deadline;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CallRequest& request = requests[i];
    request.gathering = &gathering;
    request.index = i;
    request.deadline = due;
    request.slot = redis::slot_of(calls[i].key);
    append_words(request.wire, calls[i].words);
    client.submit(request);
  }
  std::unique_lock lock(gathering.mutex);
  gathering.changed.wait(lock, [&gathering] { return gathering.outstanding == 0; });
  return gathering.code;
}

}  // namespace fcap::updater
