#pragma once

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include <fcap/redis_url.h>

#include "path/population.h"
#include "support/redis_cluster.h"

namespace fcap::bench {

/// The three masters of a Redis Cluster, without replicas, with records of the population's users.
/// What fails throws std::runtime_error.
class BenchCluster {
 public:
  static constexpr int kShards = testing::RedisCluster::kShards;

  BenchCluster() {
    for (int node = kShards; node < testing::RedisCluster::kMembers; ++node) servers_.kill(node);
  }

  [[nodiscard]] testing::RedisCluster& servers() noexcept { return servers_; }
  [[nodiscard]] RedisOptions options() const {
    return testing::or_throw(parse_redis_url(servers_.url(), {}));
  }
  [[nodiscard]] static int shard_of(const std::string& user) {
    int shard = 0;
    while (testing::RedisCluster::slots_of(shard).last < redis::slot_of(user)) ++shard;
    return shard;
  }

  /// One field of INFO, all masters together.
  [[nodiscard]] double sum(const std::string& section, const std::string& field) const {
    double all = 0;
    for (int shard = 0; shard < kShards; ++shard) all += console_of(shard).number(section, field);
    return all;
  }

  /// Writes the population compacted. Only so many records differ: the others are copies.
  void load(std::size_t users) {
    std::vector<std::string> records;
    for (std::size_t i = 0; i < std::min<std::size_t>(1'000, users); ++i) {
      records.push_back(usual_record(i));
    }
    std::vector<std::future<void>> loads;
    for (int shard = 0; shard < kShards; ++shard) {
      loads.push_back(std::async(std::launch::async, [&, shard] {
        RedisConsole console = console_of(shard);
        send_each(console, users, [&](CommandBatch& batch, std::size_t user) {
          const std::string id = user_id(user);
          if (shard_of(id) != shard) return;
          append_record(batch, key_of(id), records[user % records.size()]);
        });
      }));
    }
    for (std::future<void>& load : loads) load.get();
  }

 private:
  [[nodiscard]] RedisConsole console_of(int shard) const {
    const int slot = testing::RedisCluster::slots_of(shard).first;
    return RedisConsole(options(), static_cast<std::uint16_t>(slot));
  }

  testing::RedisCluster servers_;
};

}  // namespace fcap::bench
