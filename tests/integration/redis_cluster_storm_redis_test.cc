// A thousand clients of one cluster that fails over: all of them find the new master, and none asks
// for the topology more than once per second.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/cluster_test.h"

namespace fcap {
namespace {

using namespace std::chrono_literals;
using redis::Client;
using testing::RedisCluster;
using testing::wait_until;

class ClusterStorm : public testing::ClusterTest {
 protected:
  void make_clients(std::size_t count) {
    RedisOptions patient = testing::options_of(cluster_->url());
    patient.connect_timeout = patient.stale_reset = 60s;
    patient.direct_connections = 0;
    for (std::size_t i = 0; i < count; ++i) {
      auto made = Client::create(patient);
      ASSERT_TRUE(made.ok()) << made.status().text() << " after " << i;
      clients_.push_back(std::move(made).value());
    }
  }

  bool wait_until_connected() {
    return wait_until(
        [this] {
          return std::ranges::all_of(clients_, [](const auto& one) { return one->connected(); });
        },
        120s);
  }

  bool write(Client& client, int shard) {
    const std::string user = RedisCluster::user_of(shard);
    return wait_until([&] {
      testing::RedisCall set({"SET", user, "v"}, 1s);
      set.slot = redis::slot_of(user);
      return set.on(client).text == "OK";
    });
  }

  // How often the nodes that live were asked.
  [[nodiscard]] long long asked(const std::vector<int>& nodes) const {
    long long sum = 0;
    for (const int node : nodes) sum += cluster_->calls(node, "cluster|slots");
    return sum;
  }

  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(ClusterStorm, AThousandClientsFollowAFailover) {
  // Each has two threads and a connection to each master: under a sanitizer, still fewer of them.
  constexpr std::size_t kClients = testing::kSanitized ? 50 : testing::kClientsOfAStorm;
  testing::allow_all_descriptors();
  make_clients(kClients);
  ASSERT_TRUE(wait_until_connected());
  const auto refreshes = [](const auto& client) {
    return value_of(client->health(), "cluster_refreshes");
  };
  std::vector<std::size_t> before;
  std::ranges::transform(clients_, std::back_inserter(before), refreshes);
  const std::vector<int> survivors = {1, 2, 3, 4, 5};
  const long long asked_before = asked(survivors);
  const auto began = std::chrono::steady_clock::now();

  cluster_->fail_over(0, RedisCluster::FailOver::kKilled);
  EXPECT_TRUE(wait_until_connected());
  for (const auto& client : clients_) EXPECT_TRUE(write(*client, 0)) << client->last_error();

  std::size_t most = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    most = std::max(most, refreshes(clients_[i]) - before[i]);
  }
  const long long asked_now = asked(survivors);
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
  EXPECT_LE(most, static_cast<std::size_t>(seconds.count()) + 1);
  EXPECT_LE(asked_now - asked_before, static_cast<long long>(kClients) * (seconds.count() + 1));
  EXPECT_GT(asked_now, asked_before);
}

}  // namespace
}  // namespace fcap
