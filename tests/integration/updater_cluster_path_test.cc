// `fcap-updater run` on a real cluster, by an account with the rights that the docs name: nothing
// is lost or counted twice when a master is killed, and its pages say what is away.
#include <csignal>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cluster_test.h"
#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/process.h"
#include "support/shipped_account.h"
#include "test_paths.h"
#include "tests/seed.h"

namespace fcap {
namespace {

using ::testing::HasSubstr;
using testing::MadeEvent;
using testing::Process;
using testing::RedisCluster;
using testing::wait_until;

constexpr std::uint64_t kSeed = 20'261'126;  // unless FCAP_TEST_SEED says another
constexpr std::chrono::minutes kPatience{2};

class RunOnCluster : public testing::KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    cluster_ = std::make_unique<RedisCluster>();
    std::vector<std::string> account = {"ACL", "SETUSER", "fcap-writer", "on", ">secret"};
    for (const std::string& right : testing::shipped_rights("writer")) account.push_back(right);
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      ASSERT_EQ(cluster_->command(node, account), "OK");
      // Else nobody is answered while one shard is away.
      ASSERT_EQ(cluster_->command(node, {"CONFIG", "SET", "cluster-require-full-coverage", "no"}),
                "OK");
    }
    auto made = make_redis_store(testing::options_of(cluster_->url()));
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
  }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
    }
    producer_->flush();
  }

  [[nodiscard]] std::unique_ptr<Process> start() const {
    const std::vector<std::string> words = {FCAP_UPDATER_BINARY,
                                            "run",
                                            "--redis.addresses",
                                            cluster_->url(),
                                            "--redis.user",
                                            "fcap-writer",
                                            "--kafka.brokers",
                                            kafka->brokers(),
                                            "--kafka.topic",
                                            topic_,
                                            "--kafka.group_id",
                                            topic_,
                                            "--kafka.dead_letter_topic",
                                            "",
                                            "--http.port",
                                            "0"};
    return std::make_unique<Process>(
        words,
        Process::Options{.environment = {"FCAP_UPDATER_REDIS_PASSWORD=secret"}, .input = {}});
  }

  [[nodiscard]] static std::string page(const Process& updater, const std::string& path) {
    const std::string errors = updater.errors();
    const std::string before = "serving ";
    const std::size_t at = errors.find(before);
    if (at == std::string::npos) return {};
    const std::size_t url = at + before.size();
    const std::string base = errors.substr(url, errors.find("/metrics", url) - url);
    return testing::run({"curl", "-s", base + path}).output;
  }
  static void expect_page(const Process& updater, const std::string& path,
                          const std::string& text) {
    EXPECT_TRUE(
        wait_until([&] { return page(updater, path).find(text) != std::string::npos; }, kPatience))
        << page(updater, path) << updater.errors();
  }

  void expect_all_counted(const Process& updater) {
    testing::ExpectedLedgers::Difference difference;
    wait_until(
        [&] {
          difference = expected_.compare(*store_);
          return difference.missing + difference.unreadable == 0;
        },
        kPatience);
    EXPECT_EQ(difference.missing, 0U) << updater.errors();
    EXPECT_EQ(difference.surplus, 0U) << updater.errors();
    EXPECT_EQ(difference.unreadable, 0U) << updater.errors();
    // Nothing is missing in the updater's own opinion either, and it has caught up.
    expect_page(updater, "/metrics", "fcap_updater_gap_offsets 0\n");
    expect_page(updater, "/metrics",
                fmt::format("fcap_updater_lag_messages{{topic=\"{}\"}} 0\n", topic_));
    expect_page(updater, "/readyz", "ready\n");
  }

  static void expect_end(Process& updater) {
    updater.send_signal(SIGTERM);
    EXPECT_TRUE(updater.wait_for(kPatience)) << updater.errors();
    EXPECT_EQ(updater.exit_code(), 0) << updater.errors();
  }

  std::unique_ptr<RedisCluster> cluster_;
  std::unique_ptr<Store> store_;
  testing::EventMaker maker_{test_seed(kSeed), 2'000};
  testing::ExpectedLedgers expected_;
};

TEST_F(RunOnCluster, AMasterThatIsKilledLosesNothingAndNothingIsCountedTwice) {
  auto updater = start();
  produce(5'000);
  expect_all_counted(*updater);
  const auto killed = cluster_->master(0);
  produce(3'000);
  const int promoted = cluster_->fail_over(0, RedisCluster::FailOver::kKilled);
  produce(3'000);
  expect_all_counted(*updater);
  // The killed one comes back as a replica, and the updater starts again.
  cluster_->start(killed);
  cluster_->wait_until_whole();
  expect_end(*updater);
  produce(1'000);
  updater = start();
  expect_all_counted(*updater);
  EXPECT_EQ(cluster_->master(0), promoted);
  expect_end(*updater);
}

TEST_F(RunOnCluster, AShardThatIsAwayIsNamedAndItsEventsAreCountedWhenItIsBack) {
  auto updater = start();
  produce(2'000);
  expect_all_counted(*updater);
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 0\n");
  cluster_->kill(cluster_->replica(1));
  {
    const auto frozen = cluster_->freeze(1);
    produce(2'000);
    expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 1\n");
    expect_page(*updater, "/metrics",
                fmt::format("fcap_updater_lag_messages{{topic=\"{}\"}} 0\n", topic_));
    EXPECT_THAT(page(*updater, "/readyz"), HasSubstr("shard " + cluster_->address(1)));
    EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_ready 0\n"));
  }
  expect_all_counted(*updater);
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 0\n");
  expect_end(*updater);
}

// Each master has a setting of its own.
TEST_F(RunOnCluster, TheOneMasterThatMayEvictIsNamed) {
  ASSERT_EQ(cluster_->command(2, {"CONFIG", "SET", "maxmemory", "1gb"}), "OK");
  ASSERT_EQ(cluster_->command(2, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
  const auto updater = start();
  expect_page(*updater, "/readyz",
              fmt::format("redis: {}: maxmemory-policy is allkeys-lru", cluster_->address(2)));
  EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_redis_may_evict 1\n"));
  EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_redis_evicted_keys 0\n"));
  expect_end(*updater);
}

}  // namespace
}  // namespace fcap
