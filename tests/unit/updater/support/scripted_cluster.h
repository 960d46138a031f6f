#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redis/client.h"
#include "redis/slot_tags.h"
#include "tests/support/scripted_server.h"
#include "updater/marks/mark_value.h"
#include "updater/pipeline/shard_turns.h"

namespace fcap::updater::testing {

/// Two masters of a Redis Cluster that keep marks and nothing else, and do to them what a test
/// wants.
class ScriptedCluster {
 public:
  using Words = redis::ScriptedServer::Words;
  using Records = std::map<std::string, std::string>;
  static constexpr int kNodes = 2;

  ScriptedCluster() {
    for (int node = 0; node < kNodes; ++node) {
      servers_.push_back(std::make_unique<redis::ScriptedServer>(
          [this, node](std::size_t /*connection*/, const Words& words) {
            return std::optional(answer(node, words));
          }));
    }
    const std::lock_guard lock(mutex_);
    for (const auto& server : servers_) ports_.push_back(server->port());
  }

  /// A client that is connected to both.
  [[nodiscard]] std::shared_ptr<redis::Client> connect() const {
    RedisOptions options;
    options.topology = RedisTopology::kCluster;
    options.addresses = {address(0)};
    auto client = redis::Client::create(std::move(options));
    EXPECT_TRUE(client.ok()) << client.status().text();
    std::shared_ptr<redis::Client> shared = std::move(client).value();
    EXPECT_TRUE(redis::eventually([&shared] { return shared->connected(); }));
    return shared;
  }

  [[nodiscard]] std::string address(int node) const {
    return servers_[static_cast<std::size_t>(node)]->address();
  }
  [[nodiscard]] static std::string id(int node) { return node == 0 ? "a" : "b"; }
  [[nodiscard]] static std::string replication(int node) { return "r-" + id(node); }

  [[nodiscard]] Records records(int node) const {
    const std::lock_guard lock(mutex_);
    return of(node).records;
  }
  /// Another updater, which has read partition 0 up to `position`, writes its mark to the first
  /// master. Keys begin with "p", the group is "g", and the topic "t".
  void put_others_mark(std::int64_t position, LogIdentity log, std::uint64_t serial) {
    constexpr int kPlace = ShardTurns::kPlaceEvery - 1;
    MarkValue mark{.position = position, .log = std::move(log)};
    mark.shard = {.node = id(0),
                  .replication = replication(0),
                  .arrivals_safe = true,
                  .serial = serial,
                  .places = {kPlace},
                  .slots = SlotSet(slots_of(0).first, slots_of(0).second)};
    put_in_place_of_mark(encode_mark(mark));
  }
  /// Puts any bytes where put_others_mark() puts a mark, whose key it gives.
  std::string put_in_place_of_mark(const std::string& bytes) {
    const std::string key =
        "p:!mark:{" + redis::tag_of_slot(ShardTurns::kPlaceEvery - 1) + "}:g:t:0";
    const std::lock_guard lock(mutex_);
    of(0).records[key] = bytes;
    return key;
  }
  /// It changes its mark, to `next` of it, before each time that the mark is read.
  void change_others_mark(std::function<MarkValue(const MarkValue& before)> next) {
    const std::lock_guard lock(mutex_);
    others_next_ = std::move(next);
  }
  /// As if they had been emptied at once. Their connections stay.
  void empty_all() {
    const std::lock_guard lock(mutex_);
    for (Node& node : nodes_) node.records.clear();
  }
  /// Likewise, one of them.
  void empty(int node) {
    const std::lock_guard lock(mutex_);
    of(node).records.clear();
  }
  [[nodiscard]] static SlotSet all_slots_of(int node) {
    return {slots_of(node).first, slots_of(node).second};
  }
  /// Whether the node refuses to say what it is.
  void set_refusing(int node, bool refusing) {
    const std::lock_guard lock(mutex_);
    of(node).refusing = refusing;
  }
  /// Whether the node refuses to write marks.
  void set_refusing_marks(int node, bool refusing) {
    const std::lock_guard lock(mutex_);
    of(node).refusing_marks = refusing;
  }

 private:
  struct Node {
    Records records;
    bool refusing = false;
    bool refusing_marks = false;
  };

  [[nodiscard]] Node& of(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const Node& of(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  // The slots of a node.
  [[nodiscard]] static std::pair<int, int> slots_of(int node) {
    constexpr int kEach = 16'384 / kNodes;
    return {node * kEach, (node + 1) * kEach - 1};
  }

  [[nodiscard]] std::string answer(int node, const Words& words) {
    const std::lock_guard lock(mutex_);
    if (words[0] == "CLUSTER" && words[1] == "INFO") {
      return redis::resp_text(
          "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_size:2\r\n"
          "cluster_current_epoch:1\r\n");
    }
    if (words[0] == "CLUSTER" && words[1] == "SLOTS") return slots();
    if (words[0] == "CLUSTER" && of(node).refusing) return "-NOPERM it does not say\r\n";
    if (words[0] == "CLUSTER") return redis::resp_text(nodes(node));
    if (words[0] == "INFO") {
      return redis::resp_text("role:master\r\nmaster_replid:" + replication(node) +
                              "\r\nmaster_replid2:0\r\n");
    }
    if (words[0] == "MGET") return read(of(node).records, words);
    if (words[0].starts_with("EVAL") && of(node).refusing_marks) return "-OOM it is full\r\n";
    if (words[0].starts_with("EVAL")) return exchange(of(node).records, words);
    return redis::as_single_master(words);
  }

  [[nodiscard]] std::string slots() const {
    std::vector<std::string> ranges;
    for (int node = 0; node < kNodes; ++node) {
      const auto [first, last] = slots_of(node);
      const std::string place = redis::resp_list({redis::resp_text("127.0.0.1"),
                                                  number(ports_[static_cast<std::size_t>(node)]),
                                                  redis::resp_text(id(node))});
      ranges.push_back(redis::resp_list({number(first), number(last), place}));
    }
    return redis::resp_list(ranges);
  }
  [[nodiscard]] std::string nodes(int asked) const {
    std::string lines;
    for (int node = 0; node < kNodes; ++node) {
      const auto [first, last] = slots_of(node);
      lines += id(node) + " 127.0.0.1:" + std::to_string(ports_[static_cast<std::size_t>(node)]) +
               "@1 " + (node == asked ? "myself,master" : "master") + " - 0 0 1 connected " +
               std::to_string(first) + "-" + std::to_string(last) + "\n";
    }
    return lines;
  }
  [[nodiscard]] std::string read(Records& records, const Words& words) const {
    std::vector<std::string> values;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto found = records.find(words[i]);
      if (found != records.end() && others_next_) change(found->second);
      values.push_back(found == records.end() ? "$-1\r\n" : redis::resp_text(found->second));
    }
    return redis::resp_list(values);
  }
  void change(std::string& text) const {
    const auto mark = decode_mark(text);
    // It has one place; those of the updater that is tested have two.
    if (mark && mark->shard->places.size() == 1) text = encode_mark(others_next_(*mark));
  }
  // What the script does: its name or text, the number of keys, the key, whether there must be a
  // record, which one, and what it becomes (nothing: it is deleted).
  [[nodiscard]] static std::string exchange(Records& records, const Words& words) {
    const std::string& key = words[3];
    const auto found = records.find(key);
    const auto expected = words[4] == "1" ? std::optional(words[5]) : std::nullopt;
    const auto there = found == records.end() ? std::nullopt : std::optional(found->second);
    if (there != expected) return number(0);
    if (words[6].empty()) {
      records.erase(key);
    } else {
      records[key] = words[6];
    }
    return number(1);
  }
  [[nodiscard]] static std::string number(int value) {
    return ":" + std::to_string(value) + "\r\n";
  }

  mutable std::mutex mutex_;
  std::array<Node, kNodes> nodes_;                               // guarded by mutex_
  std::vector<int> ports_;                                       // guarded by mutex_
  std::function<MarkValue(const MarkValue&)> others_next_;       // guarded by mutex_
  std::vector<std::unique_ptr<redis::ScriptedServer>> servers_;  // destroyed first
};

}  // namespace fcap::updater::testing
