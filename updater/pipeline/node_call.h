#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/client.h"
#include "updater/pipeline/shard_port.h"

namespace fcap::updater {

/// Commands for one node of a cluster, and what it has answered. It keeps itself alive until it has
/// ended, so that whoever waits for it may go at any time.
///
/// Thread safety: one thread makes, sends and polls it; the answers arrive on another.
class NodeCall final : public redis::Request, public std::enable_shared_from_this<NodeCall> {
 public:
  struct NodeAnswer {
    redis::Reply::Kind kind = redis::Reply::Kind::kNil;
    std::int64_t integer = 0;
    std::string text;                                  ///< of a string, status or error
    std::vector<std::optional<std::string>> elements;  ///< of an array of strings
    [[nodiscard]] bool is_error() const noexcept { return kind == redis::Reply::Kind::kError; }
  };

  [[nodiscard]] static std::shared_ptr<NodeCall> make();

  void add(const std::vector<std::string_view>& words);
  [[nodiscard]] std::uint32_t size() const noexcept { return commands_; }
  /// Starts it: at the node with this number, only over the connections of `epoch` if that is
  /// given. The deadline means "no progress", as that of appends.
  void send(ShardPort& shards, std::uint16_t number, std::optional<std::uint64_t> connections,
            std::chrono::milliseconds within);

  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Once it has ended: whether every command has been answered, if only by an error.
  [[nodiscard]] bool answered() const noexcept;
  [[nodiscard]] const std::vector<NodeAnswer>& answers() const noexcept { return answers_; }

  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override;
  void on_done(redis::TransportCode code) noexcept override;

 private:
  std::shared_ptr<NodeCall> self_;
  std::uint32_t commands_ = 0;
  std::vector<NodeAnswer> answers_;
  redis::TransportCode code_ = redis::TransportCode::kOk;
  std::atomic<bool> ended_{false};
};

}  // namespace fcap::updater
