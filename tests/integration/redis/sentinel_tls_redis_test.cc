// A master behind a Sentinel where every connection is encrypted: the client's, the Sentinel's and
// the replica's.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/certificates.h"
#include "support/redis_clients.h"
#include "support/redis_server.h"
#include "support/tls_redis.h"

namespace fcap {
namespace sentinel_tls_redis_test {

using namespace std::chrono_literals;
using testing::Certificate;
using testing::Certificates;
using ::testing::HasSubstr;
using testing::RedisServer;
using testing::wait_until;
using Words = std::vector<std::string>;

// One server and its port for TLS. The plain one stays, for the test itself.
class Node {
 public:
  Node(const Certificates& authority, const Certificate& certificate, const Words& more = {})
      : port_(testing::free_port()), server_(arguments(authority, certificate, more)) {}

  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + port(); }
  RedisServer& server() noexcept { return server_; }

 private:
  [[nodiscard]] Words arguments(const Certificates& authority, const Certificate& certificate,
                                const Words& more) const {
    Words all = more;
    all.insert(all.end(),
               {"--tls-port", port(), "--tls-cert-file", certificate.certificate_file,
                "--tls-key-file", certificate.key_file, "--tls-ca-cert-file", authority.ca_file(),
                "--tls-auth-clients", "no", "--tls-replication", "yes"});
    return all;
  }

  int port_;
  RedisServer server_;
};

class RedisBehindTlsSentinel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available() || !Certificates::available()) {
      GTEST_SKIP() << "redis-server, redis-cli or openssl is missing";
    }
    authority_.emplace("fcap test authority");
    const Certificate certificate = authority_->issue("server", "DNS:localhost,IP:127.0.0.1");
    master_.emplace(*authority_, certificate);
    replica_.emplace(
        *authority_, certificate,
        Words{"--replicaof", "127.0.0.1 " + master_->port(), "--repl-diskless-sync-delay", "0"});
    sentinel_.emplace(*authority_, certificate, Words{"--sentinel"});
    ask_sentinel({"MONITOR", "fcap", "127.0.0.1", master_->port(), "1"});
    ask_sentinel({"SET", "fcap", "down-after-milliseconds", "1000"});
    ask_sentinel({"SET", "fcap", "failover-timeout", "3000"});
  }

  void ask_sentinel(Words words) {
    words.insert(words.begin(), "SENTINEL");
    EXPECT_EQ(sentinel_->server().command(words), "OK");
  }

  // The Sentinel learns of the replica from the master.
  void wait_for_replica() {
    EXPECT_TRUE(wait_until([&] {
      return replica_->server().command({"INFO", "replication"}).find("link_status:up") !=
                 std::string::npos &&
             sentinel_->server().command({"INFO", "sentinel"}).find("slaves=1") !=
                 std::string::npos;
    }));
  }

  // The sum over all clients, as their health shows it.
  static std::uint64_t handshakes(const std::vector<std::unique_ptr<redis::Client>>& clients,
                                  const std::string& name) {
    std::uint64_t sum = 0;
    for (const auto& client : clients) {
      for (const auto& [key, value] : client->health().more) {
        if (key == name) sum += std::stoull(value);
      }
    }
    return sum;
  }

  [[nodiscard]] RedisOptions options() const {
    RedisOptions options = testing::quick_options(sentinel_->address());
    options.topology = RedisTopology::kSentinel;
    options.sentinel_master = "fcap";
    options.connect_timeout = options.stale_reset = 30s;
    options.tls.enabled = true;
    options.tls.ca_file = authority_->ca_file();
    return options;
  }

  std::optional<Certificates> authority_;
  std::optional<Node> master_;
  std::optional<Node> replica_;
  std::optional<Node> sentinel_;
};

TEST_F(RedisBehindTlsSentinel, TheMasterIsFoundAndItsSuccessorFollowed) {
  wait_for_replica();
  const auto client = testing::connected(options());
  const auto writes = [&](std::string_view value) {
    return wait_until([&] {
      return testing::RedisCall({"SET", "k", value}).on(*client).text == "OK";
    });
  };
  ASSERT_TRUE(writes("before"));
  ASSERT_TRUE(wait_until([&] { return replica_->server().command({"GET", "k"}) == "before"; }));

  master_->server().kill();
  ASSERT_TRUE(writes("after"));
  EXPECT_EQ(replica_->server().command({"GET", "k"}), "after");
}

// Everybody loses the master at the same moment, and has no session with its successor yet.
TEST_F(RedisBehindTlsSentinel, SOAK_AThousandClientsFollowAFailoverAndLeaveRedisUsable) {
  constexpr std::size_t kClients = testing::kSanitized ? 50 : testing::kClientsOfAStorm;
  wait_for_replica();
  RedisOptions patient = options();
  patient.connect_timeout = patient.stale_reset = 60s;
  patient.reconnect_backoff_min = RedisOptions{}.reconnect_backoff_min;
  patient.reconnect_backoff_max = RedisOptions{}.reconnect_backoff_max;
  patient.direct_connections = 0;
  const auto clients = testing::clients_of_a_storm(kClients, patient);
  const auto all_answer = [&] {
    return std::all_of(clients.begin(), clients.end(), [](const auto& client) {
      return wait_until([&] { return testing::answers(*client); }, 120s);
    });
  };
  ASSERT_TRUE(all_answer());
  const std::uint64_t before = handshakes(clients, "tls_handshakes");

  master_->server().kill();
  RedisServer& successor = replica_->server();
  ASSERT_TRUE(wait_until([&] {
    return successor.command({"INFO", "replication"}).find("role:master") != std::string::npos;
  }));
  std::atomic<bool> all_back{false};
  std::atomic<int> failed{0};
  std::jthread bystander([&] {
    while (!all_back) {
      if (successor.command({"SET", "k", "v"}) != "OK") ++failed;
      std::this_thread::sleep_for(20ms);
    }
  });
  EXPECT_TRUE(all_answer());
  all_back = true;
  bystander.join();
  EXPECT_EQ(failed, 0);
  // One each, and a few of those who were refused in the middle.
  EXPECT_LE(handshakes(clients, "tls_handshakes") - before, 2 * kClients);

  const std::uint64_t resumed = handshakes(clients, "tls_resumed");
  successor.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(
      wait_until([&] { return handshakes(clients, "tls_resumed") >= resumed + kClients; }, 120s));
  EXPECT_TRUE(all_answer());
}

TEST_F(RedisBehindTlsSentinel, ASentinelThatCannotBeVerifiedIsNotBelieved) {
  const Certificates another("another authority");
  RedisOptions wrong = options();
  wrong.tls.ca_file = another.ca_file();
  const auto client = redis::Client::create(wrong);
  ASSERT_TRUE(client.ok()) << client.status().text();
  const auto error = [&] { return client.value()->last_error(); };
  EXPECT_TRUE(wait_until([&] { return error().find("tls.ca_file") != std::string::npos; }));
  EXPECT_THAT(error(), HasSubstr(sentinel_->address()));
  EXPECT_FALSE(client.value()->connected());
}

}  // namespace sentinel_tls_redis_test
}  // namespace fcap
