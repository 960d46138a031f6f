// The watch over a real cluster: what its nodes tell, whom it believes and how often it asks.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/cluster_watch.h"
#include "support/certificates.h"
#include "support/redis_clients.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"

namespace fcap {
namespace cluster_watch_redis_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::RedisCluster;
using testing::RedisServer;
using testing::wait_until;

class Watched {
 public:
  explicit Watched(RedisOptions options) : options_(std::move(options)) {
    options_.topology = RedisTopology::kCluster;
    EXPECT_TRUE(credentials_.start(options_, [](const std::string&) {}).ok());
    std::vector<redis::Address> seeds;
    for (const std::string& seed : options_.addresses) {
      seeds.push_back(redis::parse_address(seed).value());
    }
    watch_ = std::make_unique<redis::ClusterWatch>(
        options_, seeds, [this] { return credentials_.current(); }, nodes_, map_,
        [this](LogLevel level, const std::string& text) {
          const std::lock_guard lock(mutex_);
          (level == LogLevel::kWarning ? warnings_ : news_) += text + "\n";
        },
        [this](const redis::ClusterShape&) { changes_.fetch_add(1); });
    EXPECT_TRUE(watch_->start().ok());
  }

  redis::ClusterWatch& watch() { return *watch_; }
  int changes() const { return changes_.load(); }
  std::string warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  std::string news() const {
    const std::lock_guard lock(mutex_);
    return news_;
  }
  /// Where the slot's requests go; empty while that is unknown.
  std::string owner(int slot) const {
    const redis::NodeIndex node = map_.node_of(static_cast<std::uint16_t>(slot));
    return node == redis::SlotMap::kNone ? std::string() : nodes_.address(node).text;
  }
  /// Whether it comes to know the whole cluster.
  bool begins() const {
    return wait_until([&] { return changes() != 0; });
  }
  /// Whether it comes to know this owner, if it is told that something is wrong.
  bool learns(int slot, const std::string& address) {
    return wait_until([&] {
      watch_->refresh_soon();
      return owner(slot) == address;
    });
  }
  /// Whether refreshes come to fail for this reason.
  bool fails_because(const char* why) {
    return wait_until([&] {
      watch_->refresh_soon();
      return watch_->last_error().find(why) != std::string::npos;
    });
  }

 private:
  RedisOptions options_;
  redis::Credentials credentials_;
  redis::NodeTable nodes_;
  redis::SlotMap map_;
  std::atomic<int> changes_{0};
  mutable std::mutex mutex_;
  std::string warnings_;  // guarded by mutex_
  std::string news_;      // guarded by mutex_
  std::unique_ptr<redis::ClusterWatch> watch_;
};

class RedisClusterWatch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    cluster_ = std::make_unique<RedisCluster>();
  }
  [[nodiscard]] RedisOptions options() const {
    return testing::quick_options(cluster_->address(0));
  }
  // Over all nodes.
  [[nodiscard]] long long times_asked() const {
    long long calls = 0;
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      calls += cluster_->calls(node, "cluster|slots");
    }
    return calls;
  }

  std::unique_ptr<RedisCluster> cluster_;
};

TEST_F(RedisClusterWatch, OneSeedTellsAllMastersAndReplicas) {
  Watched watched(options());
  ASSERT_TRUE(watched.begins());
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(watched.owner(RedisCluster::slots_of(shard).first), cluster_->address(shard));
    EXPECT_EQ(watched.owner(RedisCluster::slots_of(shard).last), cluster_->address(shard));
  }
  const auto shape = watched.watch().shape();
  ASSERT_NE(shape, nullptr);
  ASSERT_EQ(shape->shards.size(), 3U);
  EXPECT_EQ(shape->shards[1].master.id, cluster_->id(1));
  ASSERT_EQ(shape->shards[1].replicas.size(), 1U);
  EXPECT_EQ(shape->shards[1].replicas[0].address.text, cluster_->address(4));
  EXPECT_EQ(watched.changes(), 1);
  EXPECT_EQ(watched.watch().last_error(), "");
}

TEST_F(RedisClusterWatch, ThousandsOfWishesAreAtMostOneQuestionPerSecond) {
  const long long before = times_asked();
  const auto begin = std::chrono::steady_clock::now();
  Watched watched(options());
  std::atomic<bool> stop{false};
  std::vector<std::thread> wishing;
  for (int i = 0; i < 4; ++i) {
    wishing.emplace_back([&] {
      while (!stop.load()) {
        for (int wish = 0; wish < 1'000; ++wish) watched.watch().refresh_soon();
        std::this_thread::sleep_for(milliseconds{1});
      }
    });
  }
  EXPECT_TRUE(wait_until([&] { return watched.watch().refreshes() >= 4; }));
  stop.store(true);
  for (std::thread& thread : wishing) thread.join();
  const auto asked = static_cast<long long>(watched.watch().refreshes());
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(asked, 1 + took / seconds{1});
  // Each was one question to one node; one may have followed meanwhile.
  EXPECT_TRUE(wait_until([&] { return times_asked() - before >= asked; }));
  EXPECT_LE(times_asked() - before, static_cast<long long>(watched.watch().refreshes()) + 1);
  EXPECT_EQ(watched.warnings(), "");
}

TEST_F(RedisClusterWatch, MovedSlotsAndANewMasterAreFollowed) {
  Watched watched(options());
  EXPECT_TRUE(watched.learns(0, cluster_->address(0)));
  cluster_->move_slots(0, 1, {0, 9});
  EXPECT_TRUE(watched.learns(9, cluster_->address(1)));
  EXPECT_EQ(watched.owner(10), cluster_->address(0));
  EXPECT_EQ(cluster_->fail_over(0, RedisCluster::FailOver::kForced), 3);
  EXPECT_TRUE(watched.learns(10, cluster_->address(3)));
}

TEST_F(RedisClusterWatch, AKilledMasterIsReplacedAlsoWhenItWasTheOnlySeed) {
  Watched watched(options());
  EXPECT_TRUE(watched.learns(0, cluster_->address(0)));
  EXPECT_EQ(cluster_->fail_over(0, RedisCluster::FailOver::kKilled), 3);
  EXPECT_TRUE(watched.learns(0, cluster_->address(3)));
  EXPECT_EQ(watched.owner(16'383), cluster_->address(2));
}

TEST_F(RedisClusterWatch, ANodeThatIsCutOffChangesNothing) {
  RedisOptions impatient = options();
  impatient.connect_timeout = milliseconds{500};
  Watched watched(impatient);
  ASSERT_TRUE(watched.begins());
  const auto shape = watched.watch().shape();
  {
    std::vector<std::unique_ptr<RedisCluster::Disturbance>> frozen;
    for (int node = 1; node < RedisCluster::kMembers; ++node) {
      frozen.emplace_back(new RedisCluster::Disturbance(cluster_->freeze(node)));
    }
    EXPECT_TRUE(watched.fails_because("cut off")) << watched.watch().last_error();
    EXPECT_TRUE(wait_until([&] {
      return watched.warnings().find("no node tells the cluster's slots") != std::string::npos;
    })) << watched.warnings();
    EXPECT_EQ(watched.watch().shape(), shape);
    EXPECT_EQ(watched.owner(16'383), cluster_->address(2));
  }
  EXPECT_TRUE(wait_until([&] {
    watched.watch().refresh_soon();
    return watched.news().find("tells the cluster's slots again") != std::string::npos;
  }));
  // One that was wished for meanwhile may have been late once more.
  EXPECT_TRUE(wait_until([&] { return watched.watch().last_error().empty(); }));
}

TEST_F(RedisClusterWatch, AnAccountThatMayNotAskIsTold) {
  for (int node = 0; node < RedisCluster::kMembers; ++node) {
    EXPECT_EQ(cluster_->command(node, {"ACL", "SETUSER", "shy", "on", ">s", "~*", "+get"}), "OK");
    EXPECT_EQ(cluster_->command(
                  node, {"ACL", "SETUSER", "asker", "on", ">s", "+cluster|info", "+cluster|slots"}),
              "OK");
  }
  RedisOptions shy = options();
  shy.user = "shy";
  shy.password = "s";
  EXPECT_TRUE(Watched(shy).fails_because("allow the commands cluster|info and cluster|slots"));
  shy.password = "wrong";
  EXPECT_TRUE(Watched(shy).fails_because("AUTH (options user, password)"));
  RedisOptions asker = options();
  asker.user = "asker";
  asker.password = "s";
  Watched watched(asker);
  EXPECT_TRUE(watched.learns(0, cluster_->address(0)));
}

TEST_F(RedisClusterWatch, EndsWhileNoNodeAnswers) {
  std::vector<std::unique_ptr<RedisCluster::Disturbance>> frozen;
  for (int node = 0; node < RedisCluster::kMembers; ++node) {
    frozen.emplace_back(new RedisCluster::Disturbance(cluster_->freeze(node)));
  }
  RedisOptions slow = options();
  slow.connect_timeout = std::chrono::hours{1};
  // It can fail only by hanging, until ctest's timeout ends it: each watch must end at once.
  for (int i = 0; i < 10; ++i) {
    const Watched watched(slow);
    std::this_thread::sleep_for(milliseconds{i});
  }
}

TEST(RedisClusterWatchElsewhere, ASingleServerNamesTheSetting) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  const RedisServer server;
  Watched watched(testing::quick_options(server.address()));
  EXPECT_TRUE(watched.fails_because(
      "topology is cluster, but this is a single server: set the option topology to single"))
      << watched.watch().last_error();
  EXPECT_EQ(watched.watch().shape(), nullptr);
}

TEST(RedisClusterWatchElsewhere, TheNodesOfATlsClusterTellTheirTlsPorts) {
  if (!RedisServer::available() || !testing::Certificates::available() || !tls::available()) {
    GTEST_SKIP() << "redis-server, redis-cli, openssl or FCAP_TLS is missing";
  }
  const testing::Certificates authority("fcap test authority");
  RedisCluster cluster(authority.ca_file(), authority.issue("server", "IP:127.0.0.1"));
  RedisOptions options = testing::quick_options(cluster.address(0));
  options.tls.enabled = true;
  options.tls.ca_file = authority.ca_file();
  Watched watched(options);
  EXPECT_TRUE(watched.learns(16'383, cluster.address(2))) << watched.watch().last_error();
}

}  // namespace cluster_watch_redis_test
}  // namespace fcap
