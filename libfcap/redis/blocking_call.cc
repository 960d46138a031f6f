#include "redis/blocking_call.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "redis/command.h"

namespace fcap::redis {
namespace {

struct Gathering {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t outstanding = 0;
  TransportCode code = TransportCode::kOk;
  const std::function<void(std::size_t, const Reply&)>* on_reply = nullptr;
};

class CallRequest final : public Request {
 public:
  void on_reply(std::uint32_t /*command*/, const Reply& reply) noexcept override {
    const std::lock_guard lock(gathering->mutex);
    (*gathering->on_reply)(index, reply);
  }
  void on_done(TransportCode code) noexcept override {
    // The lock is held to the end, because the waiter owns everything used here.
    const std::lock_guard lock(gathering->mutex);
    if (code != TransportCode::kOk) gathering->code = code;
    if (--gathering->outstanding == 0) gathering->changed.notify_all();
  }
  Gathering* gathering = nullptr;
  std::size_t index = 0;
};

}  // namespace

TransportCode call_and_wait(Client& client, std::span<const BlockingCall> calls,
                            std::chrono::milliseconds deadline,
                            const std::function<void(std::size_t, const Reply&)>& on_reply) {
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
    request.slot = slot_of(calls[i].key);
    append_word_count(request.wire, calls[i].words.size());
    for (const std::string_view word : calls[i].words) append_word(request.wire, word);
    client.submit(request);
  }
  std::unique_lock lock(gathering.mutex);
  gathering.changed.wait(lock, [&gathering] { return gathering.outstanding == 0; });
  return gathering.code;
}

}  // namespace fcap::redis
