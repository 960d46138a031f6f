#include "model_shards.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redis/reply.h"

namespace fcap::updater::testing {
namespace {

using redis::Reply;

constexpr int kSlotCount = 16'384;

std::string address_of(std::size_t shard) {
  return fmt::format("10.0.0.{}:6379", shard);
}

// The first word list in RESP, which is taken off.
std::vector<std::string> take_words(std::string_view& wire) {
  const auto number = [&wire] {
    int value = 0;
    const std::size_t end = wire.find("\r\n");
    std::from_chars(wire.data() + 1, wire.data() + end, value);
    wire.remove_prefix(end + 2);
    return static_cast<std::size_t>(value);
  };
  std::vector<std::string> words(number());
  for (std::string& word : words) {
    const std::size_t length = number();
    word = wire.substr(0, length);
    wire.remove_prefix(length + 2);
  }
  return words;
}

}  // namespace

ModelShards::ModelShards(FaultStore& store, int count) : store_(&store) {
  for (int i = 0; i < count; ++i) {
    masters_.push_back({.node = new_id('n'),
                        .replication = new_id('r'),
                        .first = i * kSlotCount / count,
                        .last = (i + 1) * kSlotCount / count - 1});
    connect(masters_.back());
  }
}

std::vector<redis::ClusterShard> ModelShards::shards() const {
  std::vector<redis::ClusterShard> all;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const ModelMaster& one = masters_[i];
    all.push_back({one.node,
                   address_of(i),
                   {{static_cast<std::uint16_t>(one.first), static_cast<std::uint16_t>(one.last)}},
                   one.epoch});
  }
  return all;
}

std::optional<std::uint16_t> ModelShards::node_at(std::string_view address) const {
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (address_of(i) == address) return static_cast<std::uint16_t>(i);
  }
  return std::nullopt;
}

int ModelShards::shard_of(std::string_view key) const {
  const int slot = redis::slot_of(key);
  int shard = 0;
  while (masters_[static_cast<std::size_t>(shard)].last < slot) ++shard;
  return shard;
}

// --- What happens to them.

void ModelShards::fail_over(int shard) {
  ModelMaster& failed = master(shard);
  failed.node = new_id('n');
  failed.former = std::exchange(failed.replication, new_id('r'));
  failed.away_for = 0;
  connect(failed);
}

void ModelShards::restart(int shard) {
  master(shard).former = "0";
  master(shard).replication = new_id('r');
  connect(master(shard));
}

void ModelShards::go_away(int shard, int steps) {
  master(shard).away_for = steps;
  connect(master(shard));
}

void ModelShards::step() {
  for (ModelMaster& one : masters_) {
    if (one.away_for > 0 && --one.away_for == 0) connect(one);
  }
}

void ModelShards::come_back() {
  for (ModelMaster& one : masters_) {
    if (std::exchange(one.away_for, 0) > 0) connect(one);
  }
}

// --- What they answer.

void ModelShards::run(FaultStore::Fault fault) {
  using Fault = FaultStore::Fault;
  redis::Request& request = *queue_.front();
  queue_.pop_front();
  const std::uint16_t node = request.only_node.value();
  const ModelMaster& asked = masters_.at(node);
  const bool other_connection = request.epoch && *request.epoch != asked.epoch;
  if (asked.away_for > 0 || other_connection) {
    return request.on_done(redis::TransportCode::kUnavailable);
  }
  if (fault == Fault::kLost) return request.on_done(redis::TransportCode::kTimeout);
  std::string_view wire = request.wire;
  for (std::uint32_t i = 0; i < request.command_count; ++i) {
    const Words words = take_words(wire);
    if (fault == Fault::kRefused) {
      request.on_reply(i, {.kind = Reply::Kind::kError, .text = "OOM it is full"});
    } else {
      answer(words, node, i, request);
    }
  }
  request.on_done(fault == Fault::kReplyLost ? redis::TransportCode::kTimeout
                                             : redis::TransportCode::kOk);
}

void ModelShards::answer(const Words& words, std::uint16_t node, std::uint32_t index,
                         redis::Request& request) {
  if (words[0] == "CLUSTER") {
    const std::string text = nodes(node);
    return request.on_reply(index, {.kind = Reply::Kind::kString, .text = text});
  }
  if (words[0] == "INFO") {
    const ModelMaster& one = masters_.at(node);
    const std::string text = fmt::format("role:master\r\nmaster_replid:{}\r\nmaster_replid2:{}\r\n",
                                         one.replication, one.former);
    return request.on_reply(index, {.kind = Reply::Kind::kString, .text = text});
  }
  if (words[0] == "MGET") {
    std::vector<Reply> values;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto found = store_->records().find(words[i]);
      values.push_back(found == store_->records().end()
                           ? Reply{}
                           : Reply{.kind = Reply::Kind::kString, .text = found->second.bytes});
    }
    return request.on_reply(index, {.kind = Reply::Kind::kArray, .elements = values});
  }
  if (words[0].starts_with("EVAL")) {
    return request.on_reply(index, {.kind = Reply::Kind::kInteger, .integer = exchange(words)});
  }
  EXPECT_EQ(words[0], "PING");
  request.on_reply(index, {.kind = Reply::Kind::kStatus, .text = "PONG"});
}

std::string ModelShards::nodes(std::uint16_t asked) const {
  std::string lines;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const ModelMaster& one = masters_[i];
    lines += fmt::format("{} {}@16379 {} - 0 0 1 connected {}-{}\n", one.node, address_of(i),
                         i == asked ? "myself,master" : "master", one.first, one.last);
  }
  return lines;
}

// What the script does: its name or text, the number of keys, the key, whether there must be a
// record, which one, what it becomes (nothing: it is deleted), and when that expires.
int ModelShards::exchange(const Words& words) {
  FaultStore::Records& records = store_->records();
  const std::string& key = words[3];
  const auto found = records.find(key);
  const auto expected = words[4] == "1" ? std::optional(words[5]) : std::nullopt;
  const auto there = found == records.end() ? std::nullopt : std::optional(found->second.bytes);
  if (there != expected) return 0;
  if (words[6].empty()) {
    records.erase(key);
  } else {
    records[key] = {words[6], instant_from_ms(std::stoll(words[7]))};
  }
  return 1;
}

}  // namespace fcap::updater::testing
