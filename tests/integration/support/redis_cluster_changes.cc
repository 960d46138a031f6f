#include <algorithm>
#include <stdexcept>

#include <unistd.h>

#include "support/redis_cluster.h"

namespace fcap::testing {

int RedisCluster::add_node() {
  const auto spare = std::find(lives_.begin() + kMembers, lives_.end(), false);
  if (spare == lives_.end()) fail("no node is left to add");
  const int node = static_cast<int>(spare - lives_.begin());
  const int known = living().front();
  start(node);
  expect_ok(known, {"CLUSTER", "MEET", "127.0.0.1", client_port(node),
                    std::to_string(first_port_ + node + kNodes)});
  const std::size_t count = members(known).size() + 1;
  wait_for_all("the meeting of a node", [&](int asked) {
    std::size_t met = 0;
    for (const Member& member : members(asked)) met += member.is_reachable ? 1 : 0;
    return met >= living().size() && met <= count;
  });
  wait_until_whole();
  return node;
}

int RedisCluster::add_replica(int of) {
  const int node = add_node();
  expect_ok(node, {"CLUSTER", "REPLICATE", id(of)});
  wait_for_all("a new replica", [&](int asked) {
    const auto all = members(asked);
    return std::any_of(all.begin(), all.end(), [&](const Member& member) {
      return member.node == node && !member.is_master;
    });
  });
  wait_until_whole();
  return node;
}

void RedisCluster::remove_node(int node) {
  const std::string its_id = id(node);
  lives_.at(static_cast<std::size_t>(node)) = false;
  for (const int other : living()) expect_ok(other, {"CLUSTER", "FORGET", its_id});
  lives_.at(static_cast<std::size_t>(node)) = true;
  expect_ok(node, {"CLUSTER", "RESET", "HARD"});
  kill(node);
  wait_for_all("the removal of a node", [&](int asked) {
    const auto all = members(asked);
    return std::none_of(all.begin(), all.end(),
                        [&](const Member& member) { return member.id == its_id; });
  });
}

int RedisCluster::fail_over(int shard, FailOver how) {
  constexpr std::chrono::seconds kPatience{10};
  const int former = master(shard);
  const int successor = replica(shard);
  const auto has_happened = [&] { return command(successor, {"ROLE"}).starts_with("master"); };
  if (how == FailOver::kKilled) {
    const std::string before = command(successor, {"CONFIG", "GET", "cluster-node-timeout"});
    set_node_timeout(std::chrono::milliseconds{2000});
    kill(former);
    wait_for_all("a failover", [&](int /*asked*/) { return has_happened(); });
    set_node_timeout(std::chrono::milliseconds{std::stoi(before.substr(before.find('\n') + 1))});
  } else {
    std::vector<std::string> words = {"CLUSTER", "FAILOVER"};
    if (how == FailOver::kForced) words.emplace_back("FORCE");
    if (how == FailOver::kTakenOver) words.emplace_back("TAKEOVER");
    // The others may not have heard of it, and then do not vote.
    if (!wait_until([&] {
          const std::string answer = command(successor, words);
          return answer == "OK" && wait_until(has_happened, kPatience);
        })) {
      fail("node " + std::to_string(successor) + " did not become a master");
    }
  }
  wait_for_all("news of a failover", [&](int asked) {
    bool took_over = false;
    for (const Member& member : members(asked)) {
      if (member.node == successor) took_over = member.is_master && !member.slots.empty();
      if (member.node == former && !member.slots.empty()) return false;
    }
    return took_over;
  });
  return successor;
}

void RedisCluster::act(const std::string& action, int node) {
  service_.act(action, {"--node", std::to_string(node)});
}

void RedisCluster::kill(int node) {
  act("kill", node);
  lives_.at(static_cast<std::size_t>(node)) = false;
}

void RedisCluster::start(int node) {
  service_.act("start", {"--node", std::to_string(node), "--owner", std::to_string(getpid())});
  lives_.at(static_cast<std::size_t>(node)) = true;
}

void RedisCluster::set_node_timeout(std::chrono::milliseconds time) const {
  for (const int node : living()) {
    expect_ok(node, {"CONFIG", "SET", "cluster-node-timeout", std::to_string(time.count())});
  }
}

RedisCluster::Disturbance::Disturbance(RedisCluster& cluster, Kind kind, int node)
    : cluster_(cluster), kind_(kind), node_(node) {
  if (kind_ == Kind::kFrozen) {
    cluster_.act("freeze", node_);
    cluster_.lives_.at(static_cast<std::size_t>(node_)) = false;
  } else {
    // Redis pauses what its master sends as it pauses clients' writes; reads go on.
    cluster_.expect_ok(node_, {"CLIENT", "PAUSE", "86400000", "WRITE"});
  }
}

RedisCluster::Disturbance::~Disturbance() {
  try {
    if (kind_ == Kind::kFrozen) {
      cluster_.act("thaw", node_);
      cluster_.lives_.at(static_cast<std::size_t>(node_)) = true;
    } else {
      cluster_.command(node_, {"CLIENT", "UNPAUSE"});
    }
  } catch (const std::exception&) {
    // It has been killed meanwhile.
  }
}

}  // namespace fcap::testing
