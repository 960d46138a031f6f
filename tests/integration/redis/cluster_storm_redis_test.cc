// A thousand clients of one cluster that fails over: all of them find the new master, and none asks
// for the topology more than once per second.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/cluster_test.h"

namespace fcap {
namespace cluster_storm_redis_test {

using namespace std::chrono_literals;
using redis::Client;
using testing::RedisCluster;
using testing::wait_until;

using Clock = std::chrono::steady_clock;

class ClusterStorm : public testing::ClusterTest {
 protected:
  // A read that is submitted again and again. It outlives its client, which ends it.
  struct Read final : redis::Request {
    explicit Read(int shard) {
      wire = RedisCluster::user_of(shard);
      slot = redis::slot_of(wire);
      form = WireForm::kGetKey;
    }
    void on_reply(std::uint32_t /*index*/, const redis::Reply& reply) noexcept override {
      if (reply.kind == redis::Reply::Kind::kError && reply.text.starts_with("CLUSTERDOWN")) {
        turned_away = true;
      }
    }
    void on_done(redis::TransportCode /*code*/) noexcept override { waits = false; }

    std::atomic<bool> waits{false};
    std::atomic<bool> turned_away{false};
  };

  // How often a client had asked for the topology, and since when that is so at the earliest.
  struct Asked {
    std::size_t times = 0;
    Clock::time_point at;
  };

  void make_clients(std::size_t count) {
    RedisOptions patient = testing::options_of(cluster_->url());
    patient.connect_timeout = patient.stale_reset = 60s;
    patient.direct_connections = 0;
    clients_ = testing::clients_of_a_storm(count, patient);
    for (std::size_t i = 0; i < count; ++i) {
      reads_.push_back(std::make_unique<Read>(static_cast<int>(i) % RedisCluster::kShards));
    }
  }

  static std::size_t refreshes(const Client& client) {
    return value_of(client.health(), "cluster_refreshes");
  }
  [[nodiscard]] std::vector<Asked> look_at_all() const {
    std::vector<Asked> all;
    for (const auto& client : clients_) {
      const auto now = Clock::now();
      all.push_back({.times = refreshes(*client), .at = now});
    }
    return all;
  }
  // None asked more than once per second since the last look.
  void expect_patience(std::vector<Asked>& last) {
    const auto all = look_at_all();
    const auto now = Clock::now();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(now - last[i].at).count();
      if (all[i].times - last[i].times <= static_cast<std::size_t>(seconds) + 1) continue;
      if (impatient_++ == 0) {
        ADD_FAILURE() << "client " << i << " asked " << all[i].times - last[i].times
                      << " times within " << seconds << " s";
      }
    }
    last = all;
    ++looks_;
  }

  [[nodiscard]] std::size_t turned_away() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(reads_, [](const auto& read) { return read->turned_away.load(); }));
  }

  // Shard 0's master is killed, and its replica waits until clients have met nodes that do not
  // serve, and have been looked at meanwhile.
  void fail_over_slowly() {
    const auto hold = [this](const std::string& held) {
      EXPECT_EQ(cluster_->command(3, {"CONFIG", "SET", "cluster-replica-no-failover", held}), "OK");
    };
    hold("yes");
    const std::jthread letting([&] {
      EXPECT_TRUE(wait_until([this] { return turned_away() > 0 && looks_ >= 2; }))
          << turned_away() << " met a node that did not serve, looks: " << looks_;
      hold("no");
    });
    cluster_->fail_over(0, RedisCluster::FailOver::kKilled);
  }

  // Through each client a few times per second, so that each meets whatever its nodes say.
  void read_and_look(const std::stop_token& over) {
    constexpr auto kPause = 10ms;
    constexpr std::size_t kPauses = 20;  // between two reads of a client
    constexpr auto kLookEvery = 900ms;   // within a second, also where looking takes its time
    auto last = look_at_all();
    auto look_at = Clock::now() + kLookEvery;
    for (std::size_t turn = 0; !over.stop_requested(); ++turn) {
      for (std::size_t i = turn % kPauses; i < clients_.size(); i += kPauses) {
        if (reads_[i]->waits.exchange(true)) continue;
        reads_[i]->deadline = Clock::now() + 1s;
        clients_[i]->submit(*reads_[i]);
      }
      std::this_thread::sleep_for(kPause);
      if (Clock::now() < look_at) continue;
      expect_patience(last);
      look_at = Clock::now() + kLookEvery;
    }
    expect_patience(last);
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

  std::vector<std::unique_ptr<Read>> reads_;  // one of each client
  std::vector<std::unique_ptr<Client>> clients_;
  std::size_t impatient_ = 0;  // how often a client was
  std::atomic<std::size_t> looks_{0};
};

TEST_F(ClusterStorm, SOAK_AThousandClientsFollowAFailover) {
  // Each has two threads and a connection to each master: under a sanitizer, still fewer of them.
  constexpr std::size_t kClients = testing::kSanitized ? 50 : testing::kClientsOfAStorm;
  for (int node = 0; node < RedisCluster::kMembers; ++node) {
    // So that all nodes say CLUSTERDOWN while one shard is away.
    ASSERT_EQ(cluster_->command(node, {"CONFIG", "SET", "cluster-require-full-coverage", "yes"}),
              "OK");
  }
  make_clients(kClients);
  ASSERT_TRUE(wait_until_connected());
  const auto began = Clock::now();  // before the counts below, which take their time
  const std::vector<Asked> before = look_at_all();
  const std::vector<int> survivors = {1, 2, 3, 4, 5};
  const long long asked_before = asked(survivors);

  {
    const std::jthread reading([this](const std::stop_token& over) { read_and_look(over); });
    fail_over_slowly();
    EXPECT_TRUE(wait_until_connected());
  }
  EXPECT_GE(looks_, 3U);
  EXPECT_EQ(impatient_, 0U) << "of " << looks_ << " looks at all clients";
  for (const auto& client : clients_) EXPECT_TRUE(write(*client, 0)) << client->last_error();

  std::size_t most = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    most = std::max(most, refreshes(*clients_[i]) - before[i].times);
  }
  const long long asked_now = asked(survivors);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(Clock::now() - began);
  EXPECT_LE(most, static_cast<std::size_t>(seconds.count()) + 1);
  EXPECT_LE(asked_now - asked_before, static_cast<long long>(kClients) * (seconds.count() + 1));
  EXPECT_GT(asked_now, asked_before);
}

}  // namespace cluster_storm_redis_test
}  // namespace fcap
