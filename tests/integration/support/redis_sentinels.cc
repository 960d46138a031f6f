#include "support/redis_sentinels.h"

#include <unistd.h>

namespace fcap::testing {
namespace {

constexpr const char* kLate = "60000";

}  // namespace

RedisSentinels::RedisSentinels() : service_("redis-sentinel", directory_.path()) {
  service_.start();
  first_port_ = std::stoi(service_.value("port"));
  url_ = service_.value("url");
  notice_after(kLate);
}

void RedisSentinels::notice_after(const std::string& milliseconds) const {
  for (int node = kFirstSentinel; node < kNodes; ++node) {
    command(node, {"SENTINEL", "SET", "fcap", "down-after-milliseconds", milliseconds});
  }
}

std::string RedisSentinels::address(int node) const {
  return "127.0.0.1:" + std::to_string(first_port_ + node);
}

std::vector<std::string> RedisSentinels::sentinels() const {
  std::vector<std::string> addresses;
  for (int node = kFirstSentinel; node < kNodes; ++node) addresses.push_back(address(node));
  return addresses;
}

std::string RedisSentinels::command(int node, const std::vector<std::string>& words,
                                    const std::vector<std::string>& options) const {
  // Bounded: a frozen server does not answer.
  std::vector<std::string> all = {
      "timeout", "30", "redis-cli", "-h", "127.0.0.1", "-p", std::to_string(first_port_ + node)};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), words.begin(), words.end());
  std::string output = run(all).output;
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

void RedisSentinels::start(int node) {
  service_.act("start", {"--node", std::to_string(node), "--owner", std::to_string(getpid())});
}

int RedisSentinels::master() const {
  for (int sentinel = kFirstSentinel; sentinel < kNodes; ++sentinel) {
    const std::string named = command(sentinel, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "fcap"});
    for (int node = 0; node < kServers; ++node) {
      if (named.ends_with("\n" + std::to_string(first_port_ + node))) return node;
    }
  }
  return -1;
}

int RedisSentinels::wait_for_other_master(int former) const {
  int found = -1;
  const bool changed = wait_until([&] {
    found = master();
    return found >= 0 && found != former && command(found, {"ROLE"}).starts_with("master");
  });
  notice_after(kLate);
  return changed ? found : -1;
}

bool RedisSentinels::wait_for_replicas(int count) const {
  return wait_until([&] {
    const int node = master();
    if (node < 0) return false;
    const std::string info = command(node, {"INFO", "replication"});
    int online = 0;
    for (std::size_t at = 0; (at = info.find("state=online", at)) != std::string::npos; ++at) {
      ++online;
    }
    return online >= count;
  });
}

}  // namespace fcap::testing
