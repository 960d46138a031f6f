#pragma once

#include <cstddef>
#include <string>

#include <fcap/redis_options.h>

#include "harness/redis_console.h"
#include "support/redis_cluster.h"

namespace fcap::bench {

/// The three masters of a Redis Cluster, without replicas, with records of the population's users.
class BenchCluster {
 public:
  static constexpr int kShards = testing::RedisCluster::kShards;

  /// On any core. Throws std::runtime_error, as everything here.
  BenchCluster();

  [[nodiscard]] testing::RedisCluster& servers() noexcept { return servers_; }
  [[nodiscard]] const std::string& url() const { return servers_.url(); }
  [[nodiscard]] RedisOptions options() const;
  [[nodiscard]] static int shard_of(const std::string& user);

  /// One field of INFO, all masters together.
  [[nodiscard]] double sum(const std::string& section, const std::string& field) const;
  /// Writes the population compacted. Only so many records differ: the others are copies.
  void load(std::size_t users);

 private:
  [[nodiscard]] RedisConsole console_of(int shard) const;

  testing::RedisCluster servers_;
};

}  // namespace fcap::bench
