#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// A range of hash slots, both ends included.
struct Slots {
  int first;
  int last;
};

/// A real cluster of three shards. Shard N begins as node N, a master of a third of the slots, and
/// node N + 3, its replica; nodes 6 and 7 join on request. What waits does so for a minute at most,
/// and what fails throws std::runtime_error.
///
///     if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
///     RedisCluster cluster;
///     cluster.move_slots(0, 1, RedisCluster::slots_of(0));
class RedisCluster {
 public:
  static constexpr int kShards = 3;
  static constexpr int kMembers = 6;
  static constexpr int kNodes = 8;

  explicit RedisCluster(const std::vector<std::string>& server_arguments = {});
  /// Clients reach it by TLS, and by the plain ports that command() uses; its nodes use TLS among
  /// each other.
  RedisCluster(const std::string& ca_file, const Certificate& certificate);

  /// Where clients find the node: "127.0.0.1:port".
  [[nodiscard]] std::string address(int node) const;
  /// Those of the nodes that it began with.
  [[nodiscard]] std::vector<std::string> addresses() const;
  /// redis-cluster://… or rediss-cluster://…
  [[nodiscard]] const std::string& url() const { return url_; }

  /// As RedisServer::command(), over the node's plain port. What is not answered for 30 s gives "".
  std::string command(int node, const std::vector<std::string>& words,
                      const std::vector<std::string>& options = {}) const;
  /// How often the node has executed a command, such as "get" or "cluster|slots".
  [[nodiscard]] long long calls(int node, const std::string& name) const;

  // What lives where.

  /// The slots that a shard begins with.
  static Slots slots_of(int shard);
  /// Users of these slots, always the same ones.
  static std::vector<std::string> users_in(Slots slots, std::size_t count);
  static std::string user_of(int shard) { return users_in(slots_of(shard), 1).front(); }

  /// One node as another one sees it.
  struct Member {
    int node = -1;
    std::string id;
    bool is_master = false;
    bool is_reachable = false;  ///< neither suspected nor known to have failed, and not new
    std::string master_id;      ///< of a replica
    std::vector<Slots> slots;
  };
  [[nodiscard]] std::vector<Member> members(int asked) const;
  [[nodiscard]] std::string id(int node) const { return command(node, {"CLUSTER", "MYID"}); }
  /// Who has the slot, as a living node sees it; -1 if nobody.
  [[nodiscard]] int owner(int slot) const;
  /// Which of a shard's first two nodes is its master now, by its own word, and which is not.
  [[nodiscard]] int master(int shard) const;
  [[nodiscard]] int replica(int shard) const;

  // Changes, as an operator makes them. They return once all living nodes know of them.

  /// Key by key, while clients go on.
  void move_slots(int from, int to, Slots slots) const;
  /// Starts one more master without slots, or one more replica; which node it is.
  int add_node();
  int add_replica(int of);
  /// Makes all others forget a node that has no slots, and ends it.
  void remove_node(int node);

  enum class FailOver {
    kInOrder,    ///< CLUSTER FAILOVER: the replica catches up first
    kForced,     ///< FORCE: the master is not asked
    kTakenOver,  ///< TAKEOVER: nobody is asked
    kKilled      ///< the master is killed, and the others notice
  };
  /// Makes the shard's replica its master; which node it is.
  int fail_over(int shard, FailOver how);

  // Faults.

  void kill(int node);
  /// Again, with what it remembers of the cluster and without data.
  void start(int node);
  /// Waits until all living nodes serve, and all living replicas are connected to their masters.
  void wait_until_whole() const;
  void set_node_timeout(std::chrono::milliseconds time) const;

  /// Undone when it goes.
  class Disturbance {
   public:
    Disturbance(const Disturbance&) = delete;
    Disturbance& operator=(const Disturbance&) = delete;
    ~Disturbance();

   private:
    friend class RedisCluster;
    enum class Kind { kFrozen, kHeldBack };
    Disturbance(RedisCluster& cluster, Kind kind, int node);

    RedisCluster& cluster_;
    Kind kind_;
    int node_;
  };
  /// The node does nothing at all (SIGSTOP).
  [[nodiscard]] Disturbance freeze(int node) { return {*this, Disturbance::Kind::kFrozen, node}; }
  /// The replica stays connected and answers, but executes nothing of what its master sends. What
  /// it has not executed by the time of a failover it loses.
  [[nodiscard]] Disturbance hold_back(int replica) {
    return {*this, Disturbance::Kind::kHeldBack, replica};
  }

 private:
  friend class SlotMove;

  void act(const std::string& action, int node);
  [[nodiscard]] std::string client_port(int node) const;
  [[nodiscard]] std::vector<std::string> client(int node) const;
  // Inline commands, all at once; throws if one of them fails.
  void pipe(int node, const std::string& commands) const;
  [[nodiscard]] std::vector<int> living() const;
  // Waits until what every living node sees is so.
  void wait_for_all(const std::string& what, const std::function<bool(int node)>& holds) const;
  [[noreturn]] static void fail(const std::string& what);
  void expect_ok(int node, const std::vector<std::string>& words) const;

  TemporaryDirectory directory_;
  Service service_;
  int first_port_ = 0;
  std::string url_;
  std::array<bool, kNodes> lives_{};
};

/// Slots on their way from one master to another, in steps. Between begin() and end() the former
/// owner sends clients on with ASK for keys that it does not have; a command over several keys that
/// are not all in one place gets TRYAGAIN.
class SlotMove {
 public:
  SlotMove(const RedisCluster& cluster, int from, int to, Slots slots);

  void begin() const;
  /// Moves the keys that are there now, but no more than `count` of each slot; how many.
  [[nodiscard]] std::size_t move_keys(std::size_t count = 1'000) const;
  /// The slots are the target's; they must have no keys left. Returns once all nodes know it.
  void end() const;
  /// Takes back begin(). Keys that have moved must be moved back first.
  void cancel() const;

 private:
  friend class RedisCluster;

  void assign() const;
  void wait_for_news() const;
  // "CLUSTER SETSLOT <slot> <state>" of each slot.
  void set(int node, const std::string& state) const;

  const RedisCluster& cluster_;
  int from_;
  int to_;
  Slots slots_;
  std::string from_id_;
  std::string to_id_;
};

}  // namespace fcap::testing
