#include "updater/replay/canary.h"

#include <random>
#include <thread>
#include <utility>

#include "redis/blocking_call.h"

namespace fcap::updater {
namespace {

constexpr int kPlantAttempts = 20;
constexpr std::chrono::milliseconds kBetweenAttempts{250};
constexpr std::string_view kCanaryLifeMs = "2764800000";  // 32 days: longer than any replay

}  // namespace

Canary::Canary(std::shared_ptr<redis::Client> client, std::string key,
               std::chrono::milliseconds deadline)
    : client_(std::move(client)),
      key_(std::move(key)),
      value_(std::to_string(std::random_device{}())),
      deadline_(deadline) {}

Canary::~Canary() {
  if (!planted_) return;
  const redis::BlockingCall call{{"DEL", key_}, key_};
  redis::call_and_wait(*client_, {&call, 1}, deadline_, [](std::size_t, const redis::Reply&) {});
}

bool Canary::plant() {
  planted_ = false;
  for (int i = 0; i < kPlantAttempts && !planted_; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBetweenAttempts);
    epoch_ = client_->connection_epoch();
    // Written over the connection that was there before and is there still.
    planted_ = write() && epoch_ == client_->connection_epoch();
  }
  return planted_;
}

bool Canary::write() {
  const redis::BlockingCall call{{"SET", key_, value_, "PX", kCanaryLifeMs}, key_};
  bool taken = false;
  redis::call_and_wait(*client_, {&call, 1}, deadline_,
                       [&](std::size_t, const redis::Reply& reply) {
                         taken = reply.kind == redis::Reply::Kind::kStatus;
                         if (!taken) why_.assign(reply.text);
                       });
  return taken;
}

bool Canary::alive() {
  const redis::BlockingCall call{{"GET", key_}, key_};
  bool found = false;
  // No answer, on the same connection, says nothing.
  for (int i = 0; i < kPlantAttempts; ++i) {
    const auto code = redis::call_and_wait(
        *client_, {&call, 1}, deadline_, [&](std::size_t, const redis::Reply& reply) {
          found = reply.kind == redis::Reply::Kind::kString && reply.text == value_;
        });
    if (code == redis::TransportCode::kOk || epoch_ != client_->connection_epoch()) break;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return found && epoch_ == client_->connection_epoch();
}

}  // namespace fcap::updater
