#include <span>
#include <string>

#include "ledger/user_key.h"
#include "redis/blocking_call.h"
#include "updater/compaction/sweep_keys.h"

namespace fcap::updater {
namespace {

using redis::Reply;

class ServerKeys final : public SweepKeys {
 public:
  ServerKeys(redis::Client& client, const Options& options)
      : client_(client),
        pattern_(ledger::user_key_pattern(options.key_prefix)),
        count_(std::to_string(options.scan_count)),
        deadline_(options.deadline) {}

  [[nodiscard]] std::vector<std::string> masters() const override { return {""}; }

  [[nodiscard]] Status next(std::vector<std::string>& keys) override {
    const redis::BlockingCall call{.words = {"SCAN", cursor_, "MATCH", pattern_, "COUNT", count_},
                                   .key = {}};
    std::string cursor;
    std::string refusal;
    keys.clear();
    const redis::TransportCode code = redis::call_and_wait(
        client_, {&call, 1}, deadline_, [&](std::size_t /*index*/, const Reply& reply) {
          if (reply.kind == Reply::Kind::kError) refusal = reply.text;
          if (reply.elements.size() != 2) return;
          cursor = reply.elements[0].text;
          for (const Reply& key : reply.elements[1].elements) keys.emplace_back(key.text);
        });
    if (code == redis::TransportCode::kOk && refusal.empty() && !cursor.empty()) {
      cursor_ = cursor;
      begun_ = true;
      return {};
    }
    return Status::error(StatusCode::kUnavailable,
                         "SCAN failed: " + (refusal.empty() ? client_.last_error() : refusal),
                         true);
  }

  [[nodiscard]] bool over() const override { return begun_ && cursor_ == "0"; }

 private:
  redis::Client& client_;
  const std::string pattern_;
  const std::string count_;
  const std::chrono::milliseconds deadline_;
  std::string cursor_ = "0";
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<SweepKeys> make_server_keys(redis::Client& client,
                                            const SweepKeys::Options& options) {
  return std::make_unique<ServerKeys>(client, options);
}

}  // namespace fcap::updater
