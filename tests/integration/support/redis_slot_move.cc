#include <algorithm>
#include <sstream>

#include "support/redis_cluster.h"

namespace fcap::testing {
namespace {

bool has_slots(const RedisCluster::Member& member, Slots wanted) {
  int count = 0;
  for (const Slots& slots : member.slots) {
    count +=
        std::max(0, std::min(slots.last, wanted.last) - std::max(slots.first, wanted.first) + 1);
  }
  return count == wanted.last - wanted.first + 1;
}

}  // namespace

void RedisCluster::move_slots(int from, int to, Slots slots) const {
  constexpr int kAtATime = 128;
  for (int first = slots.first; first <= slots.last; first += kAtATime) {
    const SlotMove move(*this, from, to, {first, std::min(first + kAtATime - 1, slots.last)});
    move.begin();
    while (move.move_keys() > 0) {
    }
    move.assign();
  }
  SlotMove(*this, from, to, slots).wait_for_news();
}

SlotMove::SlotMove(const RedisCluster& cluster, int from, int to, Slots slots)
    : cluster_(cluster),
      from_(from),
      to_(to),
      slots_(slots),
      from_id_(cluster.id(from)),
      to_id_(cluster.id(to)) {}

void SlotMove::set(int node, const std::string& state) const {
  std::string commands;
  for (int slot = slots_.first; slot <= slots_.last; ++slot) {
    commands += "CLUSTER SETSLOT " + std::to_string(slot) + " " + state + "\r\n";
  }
  cluster_.pipe(node, commands);
}

void SlotMove::begin() const {
  set(to_, "IMPORTING " + from_id_);
  set(from_, "MIGRATING " + to_id_);
}

std::size_t SlotMove::move_keys(std::size_t count) const {
  std::string questions;
  for (int slot = slots_.first; slot <= slots_.last; ++slot) {
    questions +=
        "CLUSTER GETKEYSINSLOT " + std::to_string(slot) + " " + std::to_string(count) + "\n";
  }
  const Finished answered = run(cluster_.client(from_), {.environment = {}, .input = questions});
  if (answered.exit_code != 0)
    RedisCluster::fail("GETKEYSINSLOT: " + answered.output + answered.errors);
  std::string migrations;
  std::size_t moved = 0;
  std::istringstream keys(answered.output);
  for (std::string key; std::getline(keys, key);) {
    if (key.empty()) continue;  // a slot without keys
    migrations += "MIGRATE 127.0.0.1 " + cluster_.client_port(to_) + " " + key + " 0 60000\r\n";
    ++moved;
  }
  cluster_.pipe(from_, migrations);
  return moved;
}

void SlotMove::end() const {
  assign();
  wait_for_news();
}

void SlotMove::assign() const {
  // The target first: else nobody might have the slots for a while.
  set(to_, "NODE " + to_id_);
  set(from_, "NODE " + to_id_);
}

void SlotMove::wait_for_news() const {
  cluster_.wait_for_all("the new owner of slots", [&](int asked) {
    const auto all = cluster_.members(asked);
    return std::any_of(all.begin(), all.end(), [&](const RedisCluster::Member& member) {
      return member.node == to_ && has_slots(member, slots_);
    });
  });
}

void SlotMove::cancel() const {
  set(from_, "STABLE");
  set(to_, "STABLE");
}

}  // namespace fcap::testing
