#pragma once

// The masters of a Redis Cluster in the pipeline's model: each holds the records of its slots,
// which do not move (ShardModel moves them), and answers what ShardTurns asks. A master that fails
// over is another node with another history; one that restarts is the same node with another
// history.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/updater/support/fault_store.h"
#include "updater/pipeline/shard_port.h"

namespace fcap::updater::testing {

class ModelShards final : public ShardPort {
 public:
  ModelShards(FaultStore& store, int count);

  [[nodiscard]] std::vector<redis::ClusterShard> shards() const override;
  [[nodiscard]] std::optional<std::uint16_t> node_at(std::string_view address) const override;
  [[nodiscard]] std::uint64_t node_epoch(std::uint16_t node) const override {
    return masters_.at(node).epoch;
  }
  [[nodiscard]] std::string last_error() const override { return "it is away"; }
  void submit(redis::Request& request) override { queue_.push_back(&request); }

  [[nodiscard]] int count() const { return static_cast<int>(masters_.size()); }
  /// Which of them has the key.
  [[nodiscard]] int shard_of(std::string_view key) const;
  [[nodiscard]] std::uint64_t epoch_of(std::string_view key) const {
    return masters_[static_cast<std::size_t>(shard_of(key))].epoch;
  }
  [[nodiscard]] bool is_away(std::string_view key) const {
    return masters_[static_cast<std::size_t>(shard_of(key))].away_for > 0;
  }

  /// Another node takes its place.
  void fail_over(int shard);
  void restart(int shard);
  void go_away(int shard, int steps);
  /// A step of the model has passed.
  void step();
  void come_back();

  /// Grows with each connection made or lost.
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  /// Runs what has waited longest.
  void run(FaultStore::Fault fault);

 private:
  struct ModelMaster {
    std::string node;
    std::string replication;
    std::string former = "0";
    int first = 0;  // of its slots
    int last = 0;
    std::uint64_t epoch = 0;  // of all masters' no two are equal
    int away_for = 0;         // steps
  };
  using Words = std::vector<std::string>;

  [[nodiscard]] ModelMaster& master(int shard) { return masters_[static_cast<std::size_t>(shard)]; }
  void connect(ModelMaster& one) { one.epoch = ++connections_; }
  [[nodiscard]] std::string new_id(char kind) { return kind + std::to_string(++ids_); }
  [[nodiscard]] std::string nodes(std::uint16_t asked) const;
  void answer(const Words& words, std::uint16_t node, std::uint32_t index, redis::Request& request);
  [[nodiscard]] int exchange(const Words& words);

  FaultStore* store_;
  std::vector<ModelMaster> masters_;
  std::deque<redis::Request*> queue_;
  int ids_ = 0;
  std::uint64_t connections_ = 0;
};

}  // namespace fcap::updater::testing
