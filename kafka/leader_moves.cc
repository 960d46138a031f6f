#include "kafka/leader_moves.h"

#include <algorithm>
#include <thread>

namespace fcap::kafka {
namespace {

constexpr std::chrono::milliseconds kLeaderAgain{100};

bool leader_moves(rd_kafka_resp_err_t code) noexcept {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
      return true;
    default:
      return false;
  }
}

}  // namespace

rd_kafka_resp_err_t ask_leaders(
    std::chrono::milliseconds timeout,
    const std::function<rd_kafka_resp_err_t(std::chrono::milliseconds left)>& ask) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + timeout;
  auto left = timeout;
  while (true) {
    const rd_kafka_resp_err_t code = ask(left);
    left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
    if (!leader_moves(code) || left <= kLeaderAgain) return code;
    std::this_thread::sleep_for(kLeaderAgain);
    left -= kLeaderAgain;
  }
}

}  // namespace fcap::kafka
