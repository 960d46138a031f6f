#pragma once

#include <string>
#include <vector>

#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// A master with two replicas and three Sentinels that call it "fcap". Nodes 0 to 2 are the
/// servers, of which node 0 is the first master; nodes 3 to 5 are the Sentinels.
class RedisSentinels {
 public:
  static constexpr int kServers = 3;
  static constexpr int kFirstSentinel = 3;
  static constexpr int kNodes = 6;

  RedisSentinels();

  /// "127.0.0.1:port".
  [[nodiscard]] std::string address(int node) const;
  [[nodiscard]] std::vector<std::string> sentinels() const;
  /// redis-sentinel://…/fcap
  [[nodiscard]] const std::string& url() const { return url_; }

  /// As RedisServer::command().
  std::string command(int node, const std::vector<std::string>& words,
                      const std::vector<std::string>& options = {}) const;

  void kill(int node) { act("kill", node); }
  /// Kills the master, which the Sentinels notice.
  void kill_master(int node) {
    notice_soon();
    kill(node);
  }
  /// The Sentinels take a server for dead that has not answered for two seconds. Otherwise they
  /// wait for a minute, because on a busy machine one that lives may stand still for seconds, and
  /// they would replace it; so they do again after wait_for_other_master().
  void notice_soon() const { notice_after("2000"); }
  void freeze(int node) { act("freeze", node); }
  void thaw(int node) { act("thaw", node); }
  void start(int node);

  /// Who is the master by the word of the first Sentinel that answers; -1 if none does.
  [[nodiscard]] int master() const;
  /// Waits until another node than `former` is the master and says so itself; which one, or -1.
  int wait_for_other_master(int former) const;
  /// Waits until the master has so many replicas whose links are up.
  bool wait_for_replicas(int count) const;

 private:
  void notice_after(const std::string& milliseconds) const;
  void act(const std::string& action, int node) {
    service_.act(action, {"--node", std::to_string(node)});
  }

  TemporaryDirectory directory_;
  Service service_;
  int first_port_ = 0;
  std::string url_;
};

}  // namespace fcap::testing
