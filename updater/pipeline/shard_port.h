#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/client.h"

namespace fcap::updater {

/// The masters of a Redis Cluster, as ShardTurns asks them. What the functions say is as in
/// redis::Client.
///
/// Thread safety: one thread; what is submitted may end on any.
class ShardPort {
 public:
  virtual ~ShardPort() = default;
  [[nodiscard]] virtual std::vector<redis::ClusterShard> shards() const = 0;
  [[nodiscard]] virtual std::optional<std::uint16_t> node_at(std::string_view address) const = 0;
  [[nodiscard]] virtual std::uint64_t node_epoch(std::uint16_t node) const = 0;
  [[nodiscard]] virtual std::string last_error() const = 0;
  virtual void submit(redis::Request& request) = 0;
};

/// Those of a client.
class ClientShards final : public ShardPort {
 public:
  /// `client`: of a cluster.
  explicit ClientShards(std::shared_ptr<redis::Client> client) : client_(std::move(client)) {}

  [[nodiscard]] std::vector<redis::ClusterShard> shards() const override {
    return client_->shards();
  }
  [[nodiscard]] std::optional<std::uint16_t> node_at(std::string_view address) const override {
    return client_->node_at(address);
  }
  [[nodiscard]] std::uint64_t node_epoch(std::uint16_t node) const override {
    return client_->node_epoch(node);
  }
  [[nodiscard]] std::string last_error() const override { return client_->last_error(); }
  void submit(redis::Request& request) override { client_->submit(request); }

 private:
  std::shared_ptr<redis::Client> client_;
};

}  // namespace fcap::updater
