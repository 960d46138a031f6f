// The transport over a real cluster: where requests go, and what is known of the shards.
#include <atomic>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/redis_url.h>

#include "redis/client.h"
#include "redis/config_record.h"
#include "redis/direct_reads.h"
#include "redis/redis_store.h"
#include "support/redis_clients.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/store_calls.h"

namespace fcap {
namespace cluster_transport_redis_test {

using namespace std::chrono_literals;
using redis::Client;
using redis::TransportCode;
using ::testing::HasSubstr;
using testing::RedisCluster;
using testing::SlotMove;
using testing::StoreCalls;
using testing::wait_until;
using Call = testing::RedisCall;

std::string key_of(int shard) {
  return "fcap:{" + RedisCluster::user_of(shard) + "}";
}
std::uint16_t slot_in(int shard) {
  return redis::slot_of(key_of(shard));
}
Instant expiry() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
}

Store::Deadline due() {
  return std::chrono::steady_clock::now() + 30s;
}

struct Outcome final : StoreCompletion {
  void complete(const StoreOutcome& outcome) noexcept override {
    code = outcome.code;
    record = std::string(outcome.record);
    stale = outcome.stale;
    ended->release();
  }
  StoreCode code = StoreCode::kOverloaded;
  std::string record;
  bool stale = false;
  std::shared_ptr<std::counting_semaphore<>> ended = std::make_shared<std::counting_semaphore<>>(0);
};

struct ListOutcome final : StoreListCompletion {
  void complete(std::size_t /*index*/, const StoreOutcome& outcome) noexcept override {
    code = outcome.code;
    epoch = outcome.connection_epoch;
    ended.release();
  }
  StoreCode code = StoreCode::kOverloaded;
  std::uint64_t epoch = 0;
  std::binary_semaphore ended{0};
};

std::string more(const Client& client, const std::string& name) {
  for (const auto& [key, value] : client.health().more) {
    if (key == name) return value;
  }
  return "none";
}

class RedisClusterTransport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    cluster_ = std::make_unique<RedisCluster>();
    open(options());
  }

  [[nodiscard]] RedisOptions options() const {
    return parse_redis_url(cluster_->url(), testing::quick_options({})).value();
  }
  void open(const RedisOptions& options) {
    store_.reset();
    client_ = testing::connected(options);
    store_ = redis::make_redis_store(client_);
  }

  Call& on_slot(Call& call, std::uint16_t slot) {
    call.slot = slot;
    return call.on(*client_);
  }
  std::string set(int shard, const std::string& value) {
    Call call({"SET", key_of(shard), value});
    return on_slot(call, slot_in(shard)).text;
  }
  std::string get(int shard) { return StoreCalls(*store_).get(key_of(shard)).record; }

  // Gives the outcome's connection_epoch.
  std::uint64_t append(int shard) {
    const std::string key = key_of(shard);
    const Store::Append one{.key = key, .bytes = "a", .expire_at = expiry()};
    ListOutcome done;
    store_->append_all({&one, 1}, due(), done);
    done.ended.acquire();
    EXPECT_EQ(done.code, StoreCode::kOk);
    return done.epoch;
  }
  Outcome read_maybe_stale(int shard) {
    Outcome outcome;
    store_->get_maybe_stale(key_of(shard), due(), outcome);
    outcome.ended->acquire();
    return outcome;
  }

  TransportCode bound_set(std::uint16_t slot, const std::string& key, std::uint64_t epoch) {
    Call call({"SET", key, "bound"});
    call.epoch = epoch;
    return on_slot(call, slot).code;
  }

  std::unique_ptr<RedisCluster> cluster_;
  std::shared_ptr<Client> client_;
  std::unique_ptr<Store> store_;
};

TEST_F(RedisClusterTransport, EachKeyGoesToItsShardWithoutARedirect) {
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(set(shard, "v"), "OK");
    EXPECT_EQ(get(shard), "v");
    EXPECT_EQ(cluster_->command(shard, {"GET", key_of(shard)}), "v");
  }
  EXPECT_EQ(more(*client_, "cluster_moved"), "0");
  EXPECT_EQ(more(*client_, "cluster_masters_ready"), "3");
  EXPECT_EQ(more(*client_, "cluster_slots"), "16384");
  EXPECT_EQ(client_->last_error(), "");
}

TEST_F(RedisClusterTransport, SeveralThreadsReachAllShards) {
  RedisOptions several = options();
  several.io_threads = 3;
  open(several);
  std::vector<std::string> keys;
  for (const auto& user : RedisCluster::users_in({0, 16383}, 600)) {
    keys.push_back("fcap:{" + user + "}");
  }
  struct Done final : StoreListCompletion {
    void complete(std::size_t index, const StoreOutcome& outcome) noexcept override {
      if (outcome.code == StoreCode::kOk) ++lengths[index];
      left.release();
    }
    std::vector<std::atomic<int>> lengths = std::vector<std::atomic<int>>(600);
    std::counting_semaphore<> left{0};
  } done;
  std::vector<Store::Append> appends;
  for (const std::string& key : keys) {
    appends.push_back({.key = key, .bytes = "a", .expire_at = expiry()});
  }
  store_->append_all(appends, std::chrono::steady_clock::now() + 30s, done);
  for (std::size_t i = 0; i < keys.size(); ++i) done.left.acquire();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(done.lengths[i], 1) << keys[i];
    EXPECT_EQ(StoreCalls(*store_).get(keys[i]).record, "a");
  }
  EXPECT_EQ(more(*client_, "cluster_moved"), "0");
}

TEST_F(RedisClusterTransport, ARequestForAWrongSlotIsRedirected) {
  Call call({"SET", key_of(1), "v"});
  EXPECT_EQ(on_slot(call, slot_in(0)).text, "OK");
  EXPECT_EQ(cluster_->command(1, {"GET", key_of(1)}), "v");
  EXPECT_EQ(more(*client_, "cluster_moved"), "1");
}

TEST_F(RedisClusterTransport, TheShardsAreToldWithTheirSlotsAndConnections) {
  const auto shards = client_->shards();
  ASSERT_EQ(shards.size(), 3U);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    const auto& told = shards[static_cast<std::size_t>(shard)];
    EXPECT_EQ(told.id, cluster_->id(shard));
    EXPECT_EQ(told.address, cluster_->address(shard));
    ASSERT_EQ(told.slots.size(), 1U);
    EXPECT_EQ(told.slots.front().first, RedisCluster::slots_of(shard).first);
    EXPECT_EQ(told.slots.front().last, RedisCluster::slots_of(shard).last);
    EXPECT_NE(told.connection_epoch, 0U);
    EXPECT_EQ(told.connection_epoch, client_->connection_epoch(slot_in(shard)));
  }
}

TEST_F(RedisClusterTransport, OnlyTheShardThatWasReconnectedHasAnotherEpoch) {
  const auto before = client_->connection_epoch();
  const auto first = client_->connection_epoch(slot_in(0));
  const auto second = client_->connection_epoch(slot_in(1));
  cluster_->command(0, {"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_TRUE(wait_until(
      [&] { return client_->connection_epoch() >= before + 2 && client_->connected(); }));
  EXPECT_NE(client_->connection_epoch(slot_in(0)), first);
  EXPECT_EQ(client_->connection_epoch(slot_in(1)), second);
  EXPECT_EQ(bound_set(slot_in(0), key_of(0), first), TransportCode::kUnavailable);
  EXPECT_EQ(bound_set(slot_in(1), key_of(1), second), TransportCode::kOk);
  EXPECT_EQ(bound_set(slot_in(0), key_of(0), client_->connection_epoch(slot_in(0))),
            TransportCode::kOk);
}

TEST_F(RedisClusterTransport, WhatIsBoundToAConnectionIsNotRedirected) {
  const std::uint16_t slot = slot_in(0);
  const auto epoch = client_->connection_epoch(slot);
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  EXPECT_EQ(bound_set(slot, key_of(0), epoch), TransportCode::kUnavailable);
  EXPECT_EQ(set(0, "asked"), "OK");
  EXPECT_EQ(client_->connection_epoch(slot), epoch) << "the slot is still its former owner's";
  EXPECT_GE(std::stoi(more(*client_, "cluster_asked")), 2);
  while (move.move_keys() > 0) {
  }
  move.end();
  EXPECT_EQ(bound_set(slot, key_of(0), epoch), TransportCode::kUnavailable);
  EXPECT_TRUE(wait_until(
      [&] { return client_->connection_epoch(slot) == client_->connection_epoch(slot_in(1)); }));
  EXPECT_EQ(cluster_->command(1, {"GET", key_of(0)}), "asked");
  EXPECT_EQ(bound_set(slot, key_of(0), client_->connection_epoch(slot)), TransportCode::kOk);
}

TEST_F(RedisClusterTransport, AnAppendTellsOverWhichConnectionItWasExecuted) {
  const std::uint16_t slot = slot_in(0);
  EXPECT_EQ(append(0), client_->connection_epoch(slot));
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  while (move.move_keys() > 0) {
  }
  EXPECT_EQ(append(0), client_->connection_epoch(slot_in(1)));
  EXPECT_NE(append(0), client_->connection_epoch(slot));
  EXPECT_EQ(append(1), client_->connection_epoch(slot_in(1)));
  EXPECT_EQ(get(0), "aaa");
}

TEST_F(RedisClusterTransport, LoneReadsHaveConnectionsOfTheirOwnToEachNode) {
  redis::DirectReads* const direct = store_->direct_reads();
  ASSERT_NE(direct, nullptr);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(set(shard, "v"), "OK");
    Outcome outcome;
    EXPECT_TRUE(wait_until([&] { return direct->read(key_of(shard), due(), outcome); }));
    EXPECT_EQ(outcome.record, "v");
  }
  EXPECT_EQ(more(*client_, "direct_reads"), "3");
  // Where another node has it, the reader goes the usual way, which follows redirects.
  const std::uint16_t slot = slot_in(0);
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  while (move.move_keys() > 0) {
  }
  Outcome outcome;
  EXPECT_FALSE(direct->read(key_of(0), due(), outcome));
  EXPECT_EQ(get(0), "v");
  move.end();
  EXPECT_EQ(get(0), "v");
  EXPECT_TRUE(wait_until([&] { return direct->read(key_of(0), due(), outcome); }));
  EXPECT_EQ(outcome.record, "v");
}

TEST_F(RedisClusterTransport, ReplicasStandInForTheirMasters) {
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) EXPECT_EQ(set(shard, "v"), "OK");
  cluster_->set_node_timeout(60s);
  std::mutex mutex;
  std::string log;
  RedisOptions reading = options();
  reading.replica_reads = RedisReplicaReads::kWhenMasterFails;
  reading.log = [&](LogLevel /*level*/, std::string_view line) {
    const std::lock_guard lock(mutex);
    log.append(line).append("\n");
  };
  open(reading);
  // The log has some of several lines that are alike: that of one of the shards.
  int shard = -1;
  EXPECT_TRUE(wait_until([&] {
    const std::lock_guard lock(mutex);
    for (int i = 0; i < RedisCluster::kShards; ++i) {
      const std::string name = "the replica " + cluster_->address(i + 3);
      if (log.find(name + " can stand in") != std::string::npos) shard = i;
    }
    return shard >= 0;
  })) << log;
  EXPECT_FALSE(read_maybe_stale(shard).stale);
  cluster_->kill(shard);
  Outcome outcome;
  EXPECT_TRUE(wait_until([&] {
    outcome = read_maybe_stale(shard);
    return outcome.code == StoreCode::kOk;
  }));
  EXPECT_TRUE(outcome.stale);
  EXPECT_EQ(outcome.record, "v");
  EXPECT_FALSE(read_maybe_stale((shard + 1) % RedisCluster::kShards).stale);
  EXPECT_EQ(StoreCalls(*store_).get(key_of(shard)).code, StoreCode::kUnavailable);
  client_.reset();
  store_.reset();  // before what the log is written to
}

TEST_F(RedisClusterTransport, AFrozenShardCostsOnlyItsOwnUsers) {
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) EXPECT_EQ(set(shard, "v"), "OK");
  RedisOptions few = options();
  few.queue_operations_max = 30;
  few.breaker_failures = 0;
  few.stale_reset = 1h;
  open(few);
  cluster_->set_node_timeout(60s);
  const auto freeze = [this] { return new RedisCluster::Disturbance(cluster_->freeze(0)); };
  std::unique_ptr<RedisCluster::Disturbance> frozen(freeze());
  std::vector<std::unique_ptr<Call>> waiting;
  std::size_t refused = 0;
  for (int i = 0; i < 40; ++i) {
    waiting.emplace_back(new Call({"GET", key_of(0)}));
    waiting.back()->slot = slot_in(0);
    client_->submit(*waiting.back());
  }
  // Ten places of the thirty are the frozen node's.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(1 + i % 2), "v");
  frozen.reset();
  for (auto& call : waiting) refused += call->wait().code == TransportCode::kOverloaded ? 1U : 0U;
  EXPECT_EQ(refused, 30U);
}

// What Checkers are told after a loss lies with one shard. While that is away nobody can say that a
// count is complete, of whatever user; a Checker that starts meanwhile knows no better.
TEST_F(RedisClusterTransport, WhileTheConfigurationIsOutOfReachAnyEventMayBeMissing) {
  const ExpectedConfig expected{.key_prefix = "fcap", .retention = {}, .null_user_ids = {}};
  const std::string key = redis::config_key(expected.key_prefix);
  const int shard = cluster_->owner(redis::slot_of(key));
  const int elsewhere = (shard + 1) % RedisCluster::kShards;
  const auto missing = [&](const Client& client) {
    return client.missing_before(slot_in(elsewhere));
  };
  const auto write = [&] {
    redis::ConfigRecord record;
    record.key_prefix = expected.key_prefix;
    Call call({"SET", key, redis::encode_config(record)});
    return on_slot(call, redis::slot_of(key)).text == "OK";
  };
  ASSERT_TRUE(write());
  cluster_->set_node_timeout(60s);

  EXPECT_EQ(missing(*client_), std::nullopt) << "nothing is expected";
  client_->expect_config(expected);
  ASSERT_TRUE(wait_until([&] { return !missing(*client_); }));
  ASSERT_TRUE(client_->write_terms().are_known);

  cluster_->kill(shard);
  ASSERT_TRUE(wait_until([&] { return missing(*client_) == redis::kAnyEvent; }));
  EXPECT_FALSE(client_->write_terms().are_known);
  EXPECT_EQ(client_->health().missing_before, std::nullopt) << "no gap is stated";
  const auto second = Client::create(options()).value();
  second->expect_config(expected);
  ASSERT_TRUE(wait_until([&] {
    Call call({"SET", key_of(elsewhere), "v"});
    call.slot = slot_in(elsewhere);
    return call.on(*second).text == "OK";
  }));
  EXPECT_EQ(missing(*second), redis::kAnyEvent);

  cluster_->start(shard);
  ASSERT_TRUE(wait_until(write));
  EXPECT_TRUE(wait_until([&] { return !missing(*client_) && !missing(*second); }));
  EXPECT_TRUE(client_->write_terms().are_known);
}

// The first answer about the slots comes within milliseconds, on a thread of its own.
TEST_F(RedisClusterTransport, AClientMayEndWhileItLearnsTheSlots) {
  for (auto life = 0us; life < 8ms; life += 50us) {
    auto client = Client::create(options());
    ASSERT_TRUE(client.ok());
    std::this_thread::sleep_for(life);
  }
  EXPECT_EQ(set(0, "v"), "OK");
}

TEST_F(RedisClusterTransport, AServerThatIsNoNodeIsRefused) {
  const testing::RedisServer single;
  RedisOptions wrong = options();
  wrong.addresses = {single.address()};
  auto client = Client::create(wrong);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(wait_until([&] {
    return client.value()->last_error().find("topology") != std::string::npos;
  })) << client.value()->last_error();
  EXPECT_FALSE(client.value()->connected());
  EXPECT_EQ(Call({"GET", "k"}).on(*client.value()).code, TransportCode::kUnavailable);
}

TEST_F(RedisClusterTransport, ANodeOfAClusterIsRefusedAsASingleServer) {
  auto client = Client::create(testing::quick_options(cluster_->address(0)));
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(wait_until([&] {
    return client.value()->last_error().find("set the option topology to cluster") !=
           std::string::npos;
  })) << client.value()->last_error();
}

}  // namespace cluster_transport_redis_test
}  // namespace fcap
