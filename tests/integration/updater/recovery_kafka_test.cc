// The write path when what it stands on has moved: offsets that have expired, a Redis that blocks,
// a replica in its master's place.
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <linux/tcp.h>  // glibc's has no tcpi_bytes_received
#include <netinet/in.h>
#include <sys/socket.h>

#include "support/tcp_proxy.h"
#include "support/updater_pipeline.h"

namespace fcap {
namespace recovery_kafka_test {

using std::chrono::milliseconds;
using testing::EventMaker;
using testing::RedisServer;
using testing::RunningUpdater;
using testing::TcpProxy;
using testing::wait_until;

class UpdaterRecovery : public testing::UpdaterPipeline {
 protected:
  // Events that are gone before anybody has read them.
  void produce_and_delete(std::size_t count) {
    EventMaker others(test_seed(kSeed) + 1, 50);
    for (std::size_t i = 0; i < count; ++i) {
      const auto event = others.next();
      producer_->send(topic_, event.user_id, event.json(), static_cast<int>(i % kPartitions));
    }
    producer_->flush();
    kafka->delete_records(topic_, kPartitions);
  }

  // The same, but somebody may have read some of them: they are other users'.
  void produce_to_others_and_delete(int count) {
    EventMaker others(test_seed(kSeed) + 2, 50);
    for (int i = 0; i < count; ++i) {
      auto event = others.next();
      event.user_id = "other-" + event.user_id;
      producer_->send(topic_, event.user_id, event.json(), i % kPartitions);
    }
    producer_->flush();
    kafka->delete_records(topic_, kPartitions);
  }

  void expect_paused(RunningUpdater& updater) {
    EXPECT_TRUE(
        wait_until([&] { return updater.metrics().paused_partitions.value() > 0; }, kPatience))
        << updater.log();
  }

  // That the offsets of every partition had expired unread.
  static void expect_resets_said(RunningUpdater& updater) {
    const auto& resets = updater.metrics().offset_resets;
    EXPECT_TRUE(wait_until([&] { return resets.value() == kPartitions; }, kPatience))
        << resets.value() << "\n"
        << updater.log();
    EXPECT_NE(updater.log().find("no longer exists; the log begins at offset"), std::string::npos)
        << updater.log();
  }

  static updater::UpdaterOptions impatient() {
    updater::UpdaterOptions options;
    options.write.deadline = milliseconds{300};
    options.mark.deadline = milliseconds{300};
    return options;
  }
};

TEST_F(UpdaterRecovery, OffsetsThatExpiredWhileItWasAwayAreSaidAndPassedOver) {
  produce(3'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  updater->stop();
  produce_and_delete(3'000);
  produce(3'000);
  updater = start_updater();
  expect_all_counted(*updater);
  expect_resets_said(*updater);
  updater->stop();
  EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions));
}

// As by a producer that takes the time for one in seconds, or whose clock was reset.
TEST_F(UpdaterRecovery, FreshEventsUnderOldKafkaTimestampsAreNotPassedOver) {
  const Instant long_ago =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) -
      std::chrono::days{40};
  for (int i = 0; i < 1'000; ++i) {
    const testing::MadeEvent event = maker_.next();
    producer_->send_at(long_ago, topic_, event.user_id, event.json());
    expected_.add(event);
  }
  producer_->flush();
  produce(1'000);
  producer_->flush();
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_NE(updater->log().find("messages whose Kafka timestamps are before the retention"),
            std::string::npos)
      << updater->log();
  redis_->command({"FLUSHALL"});
  expect_all_counted(*updater);
}

// A log that is right is read from the retention on, as before.
TEST_F(UpdaterRecovery, EventsThatAreAsOldAsTheirKafkaTimestampsArePassedOver) {
  const Instant long_ago =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) -
      std::chrono::days{40};
  for (int i = 0; i < 1'000; ++i) {
    testing::MadeEvent event = maker_.next();
    event.time = long_ago;
    producer_->send_at(long_ago, topic_, event.user_id, event.json());
  }
  producer_->flush();
  produce(1'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_EQ(updater->metrics().messages.value(), 1'000U) << updater->log();
}

// Such as the earliest time that a language has. A mark names the last message.
TEST_F(UpdaterRecovery, AKafkaTimestampBefore1970IsNone) {
  auto updater = start_updater();
  for (int i = 0; i < 30; ++i) {
    const testing::MadeEvent event = maker_.next();
    producer_->send_at(instant_from_ms(-62'135'596'800'000), topic_, event.user_id, event.json());
    expected_.add(event);
  }
  producer_->flush();
  expect_all_counted(*updater);
  updater->stop();
  EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions));
  updater = start_updater();
  produce(100);
  expect_all_counted(*updater);
}

TEST_F(UpdaterRecovery, OffsetsThatExpireWhileRedisHoldsItUpAreSaidAndPassedOver) {
  produce(3'000);
  auto updater = start_updater(impatient());
  expect_all_counted(*updater);
  redis_->freeze();
  expect_paused(*updater);
  produce_and_delete(3'000);
  produce(3'000);
  producer_->flush();
  redis_->thaw();
  expect_all_counted(*updater);
  expect_resets_said(*updater);
  updater->stop();
  EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions));
}

// Not paused, so the consumer is not moved: Kafka's client goes to the log's beginning by itself.
TEST_F(UpdaterRecovery, OffsetsThatExpireWhileTheyAreReadAreSaidAndPassedOver) {
  updater::UpdaterOptions options = impatient();
  options.pause_after = std::chrono::hours{1};
  options.consumer.connection.properties["fetch.message.max.bytes"] = "10000";
  options.consumer.connection.properties["queued.min.messages"] = "10";
  produce(3'000);
  auto updater = start_updater(options);
  expect_all_counted(*updater);
  redis_->freeze();
  produce_to_others_and_delete(30'000);
  produce(3'000);
  producer_->flush();
  redis_->thaw();
  expect_all_counted(*updater);
  expect_resets_said(*updater);
  EXPECT_EQ(updater->metrics().paused_partitions.value(), 0);
}

// What this process has received from that port over the connections that stand.
std::uint64_t bytes_received_from(int port) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in peer = {};
    socklen_t peer_bytes = sizeof(peer);
    tcp_info info = {};
    socklen_t info_bytes = sizeof(info);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port &&
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes) == 0) {
      sum += info.tcpi_bytes_received;
    }
  }
  return sum;
}

TEST_F(UpdaterRecovery, ABlockedRedisPausesItAndLittleIsFetchedAgain) {
  constexpr int kRounds = 3;
  constexpr std::uint64_t kMiB = 1U << 20U;
  updater::UpdaterOptions options = impatient();
  options.consumer.prefetch_bytes_max = kMiB;
  auto updater = start_updater(options);
  produce(1'000);
  expect_all_counted(*updater);
  // While a script runs for longer than this, Redis answers BUSY; before, nothing.
  redis_->command({"CONFIG", "SET", "busy-reply-threshold", "500"});
  const int port = std::stoi(kafka->brokers().substr(kafka->brokers().rfind(':') + 1));
  const std::uint64_t before = bytes_received_from(port);
  for (int round = 0; round < kRounds; ++round) {
    std::thread script([&] { redis_->command({"EVAL", "while true do end", "0"}); });
    produce(20'000);
    expect_paused(*updater);
    EXPECT_TRUE(wait_until([&] { return redis_->command({"SCRIPT", "KILL"}) == "OK"; }));
    script.join();
    EXPECT_TRUE(
        wait_until([&] { return updater->metrics().paused_partitions.value() == 0; }, kPatience));
  }
  expect_all_counted(*updater);
  const std::uint64_t pauses = updater->metrics().pauses.value();
  EXPECT_GE(pauses, kRounds);
  EXPECT_GT(updater->metrics().write_retries.value(), 0U);
  // A pause throws away what was fetched ahead: at most the queue and one answer of the broker's,
  // a MiB for each partition.
  const std::uint64_t payload = updater->metrics().message_bytes.value();
  EXPECT_LE(bytes_received_from(port) - before, 2 * payload + pauses * (1 + kPartitions) * kMiB)
      << pauses << " pauses, " << payload << " bytes of messages";
  updater->stop();
  const std::uint64_t rewound = updater->metrics().rewound_messages.value();
  EXPECT_LE(updater->metrics().messages.value(), 61'000U + rewound) << "taken in twice";
}

// A master with a replica, and the address at which the updater finds whichever of them is in
// charge.
class UpdaterFailover : public UpdaterRecovery {
 protected:
  void SetUp() override {
    UpdaterRecovery::SetUp();
    if (IsSkipped()) return;
    redis_->command({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
    front_ = std::make_unique<TcpProxy>(redis_->port());
    link_ = std::make_unique<TcpProxy>(redis_->port());
    redis_address_ = front_->address();
    replica_ = std::make_unique<RedisServer>();
    replica_->command({"REPLICAOF", "127.0.0.1", std::to_string(link_->port())});
    ASSERT_TRUE(wait_until([this] { return replicates(*replica_); }, kPatience));
  }

  static bool replicates(const RedisServer& server) {
    return server.command({"INFO", "replication"}).find("master_link_status:up") !=
           std::string::npos;
  }

  std::unique_ptr<TcpProxy> front_;  // between the updater and whom it takes for the master
  std::unique_ptr<TcpProxy> link_;   // between the replica and its master
  std::unique_ptr<RedisServer> replica_;
};

TEST_F(UpdaterFailover, AReplicaThatWasBehindIsFilledAgainAfterItsMasterDied) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  link_->stall_replies(true);
  produce(10'000);
  expect_all_counted(*updater);  // acknowledged, and in the master alone
  std::thread failover([this] {
    redis_->kill();
    link_->cut();
    replica_->command({"REPLICAOF", "NO", "ONE"});
    front_->lead_to(replica_->port());
    front_->cut();
  });
  produce(5'000);
  failover.join();
  expect_all_counted(*updater);
  EXPECT_GE(updater->metrics().rewinds.value(), 1U) << updater->log();
  EXPECT_GE(updater->metrics().rewound_messages.value(), 10'000U) << updater->log();
  EXPECT_EQ(expected_.wrong_expiries(*replica_, std::chrono::days{32}), "");
}

TEST_F(UpdaterFailover, AMasterThatWasTurnedReplicaIsLeftForItsSuccessor) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  const auto offset = [](const RedisServer& server, const std::string& name) {
    const std::string info = server.command({"INFO", "replication"});
    const auto at = info.find(name + ":");
    return at == std::string::npos ? -1LL : std::stoll(info.substr(at + name.size() + 1));
  };
  ASSERT_TRUE(wait_until(
      [&] {
        return offset(*replica_, "slave_repl_offset") == offset(*redis_, "master_repl_offset");
      },
      kPatience));
  // The old master lives on, its connections too: it answers READONLY.
  replica_->command({"REPLICAOF", "NO", "ONE"});
  redis_->command({"REPLICAOF", "127.0.0.1", std::to_string(replica_->port())});
  front_->lead_to(replica_->port());
  produce(10'000);
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([this] { return replicates(*redis_); }, kPatience));
  EXPECT_EQ(replica_->command({"ROLE"}).substr(0, 6), "master");
}

}  // namespace recovery_kafka_test
}  // namespace fcap
