#pragma once

// A cluster of which ShardMarks is told, case by case.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "updater/pipeline/shard_marks.h"

namespace fcap::updater::testing {

// Two masters, a and b, of twelve slots; 100 offsets were read before.
class ShardMarksTest : public ::testing::Test {
 protected:
  ShardMarksTest() { marks_.set_nodes(nodes()); }

  struct Shard {
    ShardLook look;
    std::uint64_t epoch = 1;
    std::vector<MarkValue> marks = {};
  };
  [[nodiscard]] std::vector<std::string> nodes() const {
    std::vector<std::string> all;
    for (const auto& [node, shard] : shards_) all.push_back(node);
    return all;
  }
  // Asks a shard, and reads its marks if they must be read.
  void look_once(const std::string& node) {
    const Shard& shard = shards_.at(node);
    marks_.looked(shard.look, shard.epoch);
    if (marks_.must_read(node)) {
      marks_.found(node, shard.epoch, shard.marks, marks_.look_of(node));
    }
  }
  // The same, and once more if its marks show a loss.
  void look(const std::string& node) {
    look_once(node);
    if (marks_.must_read(node)) look_once(node);
  }
  // The same, and writes its next mark.
  void turn(const std::string& node, std::int64_t position = 100) {
    look(node);
    const auto mark = marks_.to_write(node, position);
    if (!mark) return;
    for (const MarkValue& copy : copies_of(*mark)) put(node, copy);
    marks_.written(node, shards_.at(node).epoch);
  }
  void turns(int count = 3) {
    for (int i = 0; i < count; ++i) {
      for (const std::string& node : nodes()) turn(node);
    }
  }
  // As after a while: every mark names its slots and has no gap.
  void come_to_rest() {
    turns();
    marks_.filled(all_, {0, 100}, marks_.stamp());
    turns();
    ASSERT_TRUE(marks_.settled(100));
    restarted_ = marks_.slots_restarted();
  }
  void put(const std::string& node, const MarkValue& copy) {
    std::vector<MarkValue>& marks = shards_.at(node).marks;
    std::erase_if(marks, [&copy](const MarkValue& there) {
      return there.shard->places.front() == copy.shard->places.front();
    });
    marks.push_back(copy);
  }
  // As if the shard's mark were older.
  void lower(const std::string& node, std::int64_t position) {
    for (MarkValue& copy : shards_.at(node).marks) copy.position = position;
  }
  // Another updater takes the partition over.
  void start_again() {
    marks_ = ShardMarks(0, 100, all_);
    marks_.set_nodes(nodes());
    restarted_ = 0;
  }
  void fail_over(const std::string& node, const std::string& to) {
    Shard shard = shards_.at(node);
    shards_.erase(node);
    shard.look.node = to;
    shard.look.former = std::exchange(shard.look.replication, "r-" + to);
    shard.look.importing = {};
    shard.look.migrating = {};
    shards_[to] = std::move(shard);
    marks_.set_nodes(nodes());
  }
  void move(const SlotSet& slots, const std::string& from, const std::string& to) {
    std::vector<MarkValue>& marks = shards_.at(from).marks;
    const auto stays = [&slots](const MarkValue& copy) {
      return !slots.contains(copy.shard->places.front());
    };
    const auto moved = std::partition(marks.begin(), marks.end(), stays);
    std::move(moved, marks.end(), std::back_inserter(shards_.at(to).marks));
    marks.erase(moved, marks.end());
    shards_.at(from).look.owned -= slots;
    shards_.at(from).look.migrating -= slots;
    shards_.at(to).look.owned |= slots;
    shards_.at(to).look.importing -= slots;
  }
  [[nodiscard]] std::size_t restarted() const { return marks_.slots_restarted() - restarted_; }
  [[nodiscard]] std::string slots_of(const std::string& node) const {
    return marks_.confirmed(node)->shard->slots.text();
  }

  const SlotSet all_{0, 11};
  std::map<std::string, Shard> shards_{
      {"a", {{.node = "a", .replication = "r-a", .owned = {0, 5}}}},
      {"b", {{.node = "b", .replication = "r-b", .owned = {6, 11}}}}};
  ShardMarks marks_{0, 100, all_};
  std::size_t restarted_ = 0;
};

}  // namespace fcap::updater::testing
