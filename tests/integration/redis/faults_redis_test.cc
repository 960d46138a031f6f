// The transport when the server or the way to it misbehaves. No reply may reach another request, no
// request may be late by more than its deadline, and everything recovers by itself.
#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/store_calls.h"
#include "support/tcp_proxy.h"

namespace fcap {
namespace faults_redis_test {

using redis::Client;
using redis::TransportCode;
using std::chrono::milliseconds;
using Call = testing::RedisCall;
using testing::answers;
using testing::connected;
using testing::quick_options;
using testing::StoreCalls;
using testing::TcpProxy;
using testing::wait_until;
using Clock = std::chrono::steady_clock;

class RedisFaults : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    proxy_ = std::make_unique<TcpProxy>(redis_->port());
  }

  std::unique_ptr<TcpProxy> proxy_;
};

// Reads keys whose values name their owner, one after the other, and counts what comes.
class OwnedReads final : public StoreCompletion {
 public:
  OwnedReads(Store& store, std::uint64_t random_seed, int count)
      : store_(store), random_(random_seed), left_(count) {
    next();
  }

  void complete(const StoreOutcome& outcome) noexcept override {
    if (outcome.code == StoreCode::kOk) {
      ++(outcome.record == value_of(key_) ? right : wrong);
    } else if (outcome.code == StoreCode::kTimeout) {
      ++timeouts;
    } else {
      ++others;
    }
    if (--left_ == 0) {
      done.store(true, std::memory_order_release);
    } else {
      next();
    }
  }

  static constexpr std::uint64_t kKeys = 500;
  static std::string key_of(std::uint64_t number) { return "owner-" + std::to_string(number); }
  static std::string value_of(const std::string& key) {
    std::string value;
    while (value.size() < key.size() % 7 * 40 + 20) value += key + "|";
    return value;
  }

  int right = 0;
  int wrong = 0;
  int timeouts = 0;
  int others = 0;
  std::atomic<bool> done{false};

 private:
  void next() {
    key_ = key_of(random_() % kKeys);
    auto time = std::chrono::microseconds{200 + random_() % 6000};
    if (left_ % 10 == 0) time = std::chrono::minutes{1};  // a few are answered on any machine
    store_.get(key_, Clock::now() + time, *this);
  }

  Store& store_;
  std::mt19937_64 random_;
  std::string key_;
  int left_;
};

TEST_F(RedisFaults, LateRepliesNeverReachAnotherRequest) {
  for (std::uint64_t i = 0; i < OwnedReads::kKeys; ++i) {
    const std::string key = OwnedReads::key_of(i);
    redis_->command({"SET", key, OwnedReads::value_of(key)});
  }
  std::mt19937_64 random(test_seed());
  for (const std::size_t mget_keys_max : {std::size_t{1}, std::size_t{8}}) {
    RedisOptions options = quick_options(proxy_->address());
    options.mget_keys_max = mget_keys_max;
    options.breaker_failures = 0;
    options.stale_reset = std::chrono::minutes{1};
    auto store = make_redis_store(options);
    ASSERT_TRUE(store.ok());
    ASSERT_EQ(StoreCalls(*store.value()).get("none").code, StoreCode::kNotFound);
    const std::size_t connections = proxy_->accepted();
    proxy_->delay_replies(milliseconds{5});
    std::vector<std::unique_ptr<OwnedReads>> readers;
    readers.reserve(40);
    for (int i = 0; i < 40; ++i) {
      readers.push_back(std::make_unique<OwnedReads>(*store.value(), random(), 300));
    }
    // In between, everything stands still for longer than any deadline.
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(milliseconds{50});
      proxy_->stall_replies(true);
      std::this_thread::sleep_for(milliseconds{20});
      proxy_->stall_replies(false);
    }
    int right = 0;
    int timeouts = 0;
    for (const auto& reader : readers) {
      ASSERT_TRUE(wait_until([&] { return reader->done.load(std::memory_order_acquire); },
                             std::chrono::seconds{60}));
      EXPECT_EQ(reader->wrong, 0);
      EXPECT_EQ(reader->others, 0);
      right += reader->right;
      timeouts += reader->timeouts;
    }
    EXPECT_GT(right, 0);
    EXPECT_GT(timeouts, 0);
    EXPECT_EQ(proxy_->accepted(), connections);  // on one connection all the time
    proxy_->delay_replies(milliseconds{0});
  }
}

TEST_F(RedisFaults, ALostReplyLeavesTheOutcomeOpenAndTheConnectionIsMadeAnew) {
  RedisOptions options = quick_options(proxy_->address());
  options.stale_reset = std::chrono::seconds{30};
  const auto client = connected(options);
  proxy_->stall_replies(true);
  Call increment({"INCR", "n"}, std::chrono::seconds{30});
  client->submit(increment);
  // The command has taken effect, and its sender does not know.
  EXPECT_TRUE(wait_until([&] { return redis_->command({"GET", "n"}) == "1"; }));
  proxy_->cut();
  EXPECT_EQ(increment.wait().code, TransportCode::kUnavailable);
  proxy_->stall_replies(false);
  EXPECT_TRUE(wait_until([&] { return answers(*client); }));
  EXPECT_EQ(redis_->command({"GET", "n"}), "1");  // it is not sent a second time
  EXPECT_EQ(client->connection_epoch(), 3U);      // made, lost, made
}

TEST_F(RedisFaults, AFrozenServerCostsADeadlineThenNothingAndIsFoundAgain) {
  RedisOptions options = quick_options(redis_->address());
  options.breaker_failures = 5;
  const auto client = connected(options);
  redis_->freeze();
  int timeouts = 0;
  EXPECT_TRUE(wait_until([&] {
    const auto code = Call({"PING"}, milliseconds{20}).on(*client).code;
    EXPECT_NE(code, TransportCode::kOk);
    timeouts += code == TransportCode::kTimeout ? 1 : 0;
    return code == TransportCode::kBreakerOpen;
  }));
  // Those that this process itself was late for do not count against the server.
  EXPECT_GE(timeouts, 5);
  redis_->thaw();
  EXPECT_TRUE(wait_until([&] { return answers(*client); }));
}

TEST_F(RedisFaults, AFrozenServersConnectionIsMadeAnewOnceAReplyIsLongOverdue) {
  RedisOptions options = quick_options(redis_->address());
  options.breaker_failures = 0;
  options.stale_reset = std::chrono::seconds{1};
  options.connect_timeout = std::chrono::minutes{1};  // its failure would be the last error
  const auto client = connected(options);
  redis_->freeze();
  EXPECT_EQ(Call({"PING"}, milliseconds{5}).on(*client).code, TransportCode::kTimeout);
  EXPECT_TRUE(wait_until([&] {
    // One that expired before it was sent leaves no reply to wait for.
    Call({"PING"}, milliseconds{5}).on(*client);
    return client->connection_epoch() == 2;
  }));
  EXPECT_TRUE(wait_until([&] {
    return client->last_error().find("stale_reset") != std::string::npos;
  })) << client->last_error();
  EXPECT_EQ(Call({"PING"}).on(*client).code, TransportCode::kUnavailable);  // at once, not queued
  redis_->thaw();
  EXPECT_TRUE(wait_until([&] { return answers(*client); }));
}

TEST_F(RedisFaults, ADeadServerIsUnavailableAtOnceAndIsFoundAgain) {
  RedisOptions options = quick_options(redis_->address());
  options.breaker_failures = 0;  // it would be another code
  const auto client = connected(options);
  redis_->kill();
  EXPECT_TRUE(wait_until([&] { return !client->connected(); }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Call({"PING"}).on(*client).code, TransportCode::kUnavailable);
  }
  redis_->start();
  EXPECT_TRUE(wait_until([&] { return answers(*client); }));
}

TEST_F(RedisFaults, AServerThatComesLaterIsFound) {
  redis_->kill();
  auto client = Client::create(quick_options(redis_->address()));
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(Call({"PING"}).on(*client.value()).code, TransportCode::kUnavailable);
  redis_->start();
  EXPECT_TRUE(wait_until([&] { return answers(*client.value()); }));
}

// Keeps a number of requests in flight from callbacks until told to stop.
class Load {
 public:
  Load(Client& client, int count) {
    for (int i = 0; i < count; ++i) loops_.push_back(std::make_unique<Loop>(client, *this));
    for (auto& loop : loops_) loop->go();
  }
  ~Load() {
    stopping_ = true;
    for (auto& loop : loops_) loop->ended.acquire();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  std::atomic<int> answered{0};
  std::atomic<int> lost{0};

 private:
  class Loop final : public redis::Request {
   public:
    Loop(Client& client, Load& load) : client_(client), load_(load) {}
    void go() {
      wire.clear();
      redis::append_command(wire, {"SET", "k", std::string(2000, 'x')});
      deadline = Clock::now() + std::chrono::seconds{30};
      client_.submit(*this);
    }
    void on_reply(std::uint32_t /*index*/, const redis::Reply& /*reply*/) noexcept override {}
    void on_done(TransportCode code) noexcept override {
      ++(code == TransportCode::kOk ? load_.answered : load_.lost);
      if (code == TransportCode::kOk && !load_.stopping_) return go();
      ended.release();
    }
    std::binary_semaphore ended{0};

   private:
    Client& client_;
    Load& load_;
  };

  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Loop>> loops_;
};

TEST_F(RedisFaults, APeerThatClosesUnderLoadRaisesNoSignal) {
  // The default disposition: SIGPIPE would end this process.
  struct sigaction before = {};
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &standard, &before);
  const auto client = connected(quick_options(proxy_->address()));
  for (int round = 0; round < 20; ++round) {
    const auto epoch = client->connection_epoch();
    Load load(*client, 64);
    ASSERT_TRUE(wait_until([&] { return load.answered > 200; }));
    proxy_->cut();
    ASSERT_TRUE(wait_until([&] { return load.lost > 0; }));
    // A load that began on the connection that is being lost would never be answered.
    ASSERT_TRUE(wait_until([&] { return client->connection_epoch() >= epoch + 2; }));
  }
  EXPECT_TRUE(wait_until([&] { return answers(*client); }));
  sigaction(SIGPIPE, &before, nullptr);
}

TEST_F(RedisFaults, AKilledClientComesBack) {
  const auto client = connected(quick_options(redis_->address()));
  for (int round = 0; round < 5; ++round) {
    const auto epoch = client->connection_epoch();
    redis_->command({"CLIENT", "KILL", "TYPE", "normal"});
    ASSERT_TRUE(wait_until([&] { return client->connection_epoch() >= epoch + 2; }));
    ASSERT_TRUE(wait_until([&] { return answers(*client); }));
  }
}

TEST_F(RedisFaults, TheDestructorFinishesEverythingPendingOnce) {
  constexpr int kPending = 1000;
  std::vector<std::unique_ptr<Call>> calls;
  {
    const auto client = connected(quick_options(redis_->address()));
    redis_->freeze();
    for (int i = 0; i < kPending; ++i) {
      calls.push_back(std::make_unique<Call>(
          std::initializer_list<std::string_view>{"SET", "k", std::string(2000, 'x')},
          std::chrono::hours{1}));
      client->submit(*calls.back());
    }
  }
  for (const auto& call : calls) {
    EXPECT_EQ(call->wait().code, TransportCode::kUnavailable);
    EXPECT_EQ(call->done_count, 1);
  }
  redis_->thaw();
}

TEST_F(RedisFaults, TheDestructorDoesNotWaitForAServerThatIsNotThere) {
  proxy_->stall_replies(true);
  RedisOptions options = quick_options(proxy_->address());
  options.connect_timeout = std::chrono::minutes{10};
  Call call({"PING"}, std::chrono::hours{1});
  {
    auto client = Client::create(options);
    client.value()->submit(call);
  }
  EXPECT_EQ(call.wait().code, TransportCode::kUnavailable);
}

TEST_F(RedisFaults, AServerTurnedReplicaIsLeftAndLookedUpAgain) {
  const auto client = connected(quick_options(redis_->address()));
  // A master that nobody answers as: this server stays a read-only replica.
  redis_->command({"REPLICAOF", "127.0.0.1", "1"});
  Call write({"SET", "k", "v"});
  EXPECT_EQ(write.on(*client).code, TransportCode::kOk);
  EXPECT_TRUE(write.text.starts_with("READONLY")) << write.text;
  EXPECT_TRUE(wait_until([&] { return client->connection_epoch() >= 3; }));
  redis_->command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(wait_until([&] {
    return Call({"SET", "k", "v"}, milliseconds{1000}).on(*client).text == "OK";
  }));
}

TEST_F(RedisFaults, ABusyServersErrorReachesTheCaller) {
  const auto client = connected(quick_options(redis_->address()));
  redis_->command({"CONFIG", "SET", "busy-reply-threshold", "1"});
  RedisOptions patient = quick_options(redis_->address());
  patient.stale_reset = std::chrono::minutes{5};
  const auto other = connected(patient);
  Call script({"EVAL", "while true do end", "0"}, std::chrono::minutes{5});
  other->submit(script);
  EXPECT_TRUE(wait_until([&] {
    return Call({"GET", "k"}, milliseconds{1000}).on(*client).text.starts_with("BUSY");
  }));
  EXPECT_EQ(redis_->command({"SCRIPT", "KILL"}), "OK");
  EXPECT_TRUE(script.wait().is_error);
}

}  // namespace faults_redis_test
}  // namespace fcap
