#include "support/redis_cluster.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "redis/client.h"

namespace fcap::testing {
namespace {

constexpr int kTlsPortsBehind = 2 * RedisCluster::kNodes;

// A word of CLUSTER NODES such as "5461-10922" or "7", but not "[7->-…]", a slot on its way.
void add_slots(const std::string& word, std::vector<Slots>& slots) {
  if (word.starts_with('[')) return;
  const auto dash = word.find('-');
  const int first = std::stoi(word);
  slots.push_back({first, dash == std::string::npos ? first : std::stoi(word.substr(dash + 1))});
}

bool has_slot(const RedisCluster::Member& member, int slot) {
  return std::any_of(member.slots.begin(), member.slots.end(), [slot](const Slots& slots) {
    return slots.first <= slot && slot <= slots.last;
  });
}

}  // namespace

RedisCluster::RedisCluster(const std::vector<std::string>& server_arguments)
    : service_("redis-cluster", directory_.path()) {
  std::vector<std::string> arguments = {"--"};
  arguments.insert(arguments.end(), server_arguments.begin(), server_arguments.end());
  service_.start(arguments);
  first_port_ = std::stoi(service_.value("port"));
  url_ = service_.value("url");
  std::fill_n(lives_.begin(), kMembers, true);
  // On a busy machine a master may stand still for seconds, and must not be replaced for that.
  set_node_timeout(std::chrono::seconds{30});
}

RedisCluster::RedisCluster(const std::string& ca_file, const Certificate& certificate)
    : RedisCluster({"--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients", "no",
                    "--tls-ca-cert-file", ca_file, "--tls-cert-file", certificate.certificate_file,
                    "--tls-key-file", certificate.key_file}) {}

std::string RedisCluster::client_port(int node) const {
  const bool encrypted = url_.starts_with("rediss");
  return std::to_string(first_port_ + node + (encrypted ? kTlsPortsBehind : 0));
}

std::string RedisCluster::address(int node) const {
  return "127.0.0.1:" + client_port(node);
}

std::vector<std::string> RedisCluster::addresses() const {
  std::vector<std::string> all;
  for (int node = 0; node < kMembers; ++node) all.push_back(address(node));
  return all;
}

std::vector<std::string> RedisCluster::client(int node) const {
  return {
      "timeout", "30", "redis-cli", "-h", "127.0.0.1", "-p", std::to_string(first_port_ + node)};
}

std::string RedisCluster::command(int node, const std::vector<std::string>& words,
                                  const std::vector<std::string>& options) const {
  std::vector<std::string> all = client(node);
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), words.begin(), words.end());
  std::string output = run(all).output;
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

void RedisCluster::expect_ok(int node, const std::vector<std::string>& words) const {
  const std::string answer = command(node, words);
  if (answer != "OK") fail(words.at(0) + " " + words.at(1) + ": " + answer);
}

void RedisCluster::pipe(int node, const std::string& commands) const {
  if (commands.empty()) return;
  std::vector<std::string> all = client(node);
  all[1] = "60";
  all.emplace_back("--pipe");
  const Finished finished = run(all, {.environment = {}, .input = commands});
  if (finished.exit_code != 0) fail(finished.output + finished.errors);
}

long long RedisCluster::calls(int node, const std::string& name) const {
  const std::string stats = command(node, {"INFO", "commandstats"});
  const std::string before = "cmdstat_" + name + ":calls=";
  const auto at = stats.find(before);
  return at == std::string::npos ? 0 : std::stoll(stats.substr(at + before.size()));
}

Slots RedisCluster::slots_of(int shard) {
  constexpr std::array<Slots, kShards> kFirstSlots{{{0, 5460}, {5461, 10922}, {10923, 16383}}};
  return kFirstSlots.at(static_cast<std::size_t>(shard));
}

std::vector<std::string> RedisCluster::users_in(Slots slots, std::size_t count) {
  std::vector<std::string> users;
  for (int i = 0; users.size() < count; ++i) {
    std::string user = "u" + std::to_string(i);
    const int slot = redis::slot_of(user);
    if (slots.first <= slot && slot <= slots.last) users.push_back(std::move(user));
  }
  return users;
}

std::vector<RedisCluster::Member> RedisCluster::members(int asked) const {
  std::vector<Member> all;
  std::istringstream lines(command(asked, {"CLUSTER", "NODES"}));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Member member;
    std::string where, flags, ignored, link;
    words >> member.id >> where >> flags >> member.master_id >> ignored >> ignored >> ignored >>
        link;
    const auto colon = where.find(':');
    if (colon == std::string::npos) fail("CLUSTER NODES: " + line);
    // Either port: a node hears of the plain ports of others a little later.
    member.node = (std::stoi(where.substr(colon + 1)) - first_port_) % kNodes;
    member.is_master = flags.find("master") != std::string::npos;
    member.is_reachable = link == "connected" && flags.find("fail") == std::string::npos &&
                          flags.find("handshake") == std::string::npos;
    for (std::string word; words >> word;) add_slots(word, member.slots);
    all.push_back(std::move(member));
  }
  return all;
}

std::vector<int> RedisCluster::living() const {
  std::vector<int> nodes;
  for (int node = 0; node < kNodes; ++node) {
    if (lives_.at(static_cast<std::size_t>(node))) nodes.push_back(node);
  }
  return nodes;
}

void RedisCluster::fail(const std::string& what) {
  throw std::runtime_error("cluster: " + what);
}

void RedisCluster::wait_for_all(const std::string& what,
                                const std::function<bool(int node)>& holds) const {
  const std::vector<int> nodes = living();
  std::string last;
  const bool held = wait_until([&] {
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) { return holds(node); });
  });
  if (held) return;
  for (const int node : nodes) last += "\n" + command(node, {"CLUSTER", "NODES"});
  fail(what + " did not happen; the nodes see" + last);
}

int RedisCluster::owner(int slot) const {
  for (const Member& member : members(living().front())) {
    if (has_slot(member, slot)) return member.node;
  }
  return -1;
}

int RedisCluster::master(int shard) const {
  for (const int node : {shard, shard + kShards}) {
    if (!lives_.at(static_cast<std::size_t>(node))) continue;
    if (command(node, {"ROLE"}).starts_with("master")) return node;
  }
  fail("shard " + std::to_string(shard) + " has no master");
}

int RedisCluster::replica(int shard) const {
  return 2 * shard + kShards - master(shard);
}

void RedisCluster::wait_until_whole() const {
  const std::vector<int> nodes = living();
  const auto is_living = [&](const Member& member) {
    return std::find(nodes.begin(), nodes.end(), member.node) != nodes.end();
  };
  wait_for_all("a whole cluster", [&](int node) {
    if (command(node, {"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos) {
      return false;
    }
    // Clients are told of a replica once its offset is known.
    const std::string told = command(node, {"CLUSTER", "SLOTS"});
    for (const Member& member : members(node)) {
      if (!is_living(member)) continue;
      if (!member.is_reachable) return false;
      if (!member.is_master && told.find(member.id) == std::string::npos) return false;
    }
    const std::string role = command(node, {"ROLE"});
    return role.starts_with("master") || role.find("\nconnected\n") != std::string::npos;
  });
}

}  // namespace fcap::testing
