// The transport against a real Redis that behaves: identities, addresses, load, limits, manners.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <semaphore>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/store_calls.h"

namespace fcap {
namespace transport_redis_test {

using redis::Client;
using redis::TransportCode;
using std::chrono::milliseconds;
using Call = testing::RedisCall;
using testing::connected;
using testing::RedisServer;
using testing::StoreCalls;
using testing::wait_until;

class RedisTransport : public testing::RedisTest {
 protected:
  RedisOptions options() {
    RedisOptions options;
    options.addresses = {redis_->address()};
    options.connect_timeout = std::chrono::seconds{30};
    options.stale_reset = std::chrono::seconds{30};
    options.log = [this](LogLevel /*level*/, std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += std::string(line) + "\n";
    };
    return options;
  }

  // A client that must not get through; its reason.
  static std::string refused(const RedisOptions& options) {
    auto client = Client::create(options);
    EXPECT_TRUE(client.ok()) << client.status().text();
    Call call({"GET", "k"});
    EXPECT_EQ(call.on(*client.value()).code, TransportCode::kUnavailable);
    EXPECT_FALSE(client.value()->connected());
    return client.value()->last_error();
  }

  std::mutex log_mutex_;
  std::string log_;
};

TEST_F(RedisTransport, RequestsMayComeBeforeTheFirstConnectionStands) {
  auto client = Client::create(options());
  ASSERT_TRUE(client.ok());
  Call call({"PING"});
  EXPECT_EQ(call.on(*client.value()).code, TransportCode::kOk);
  EXPECT_EQ(call.text, "PONG");
  EXPECT_EQ(client.value()->connection_epoch(), 1U);
  EXPECT_EQ(client.value()->last_error(), "");
}

TEST_F(RedisTransport, ANameAUnixSocketAndAnIpv6AddressLeadToTheServer) {
  const auto path = redis_->directory() / "r.sock";
  const RedisServer also({"--unixsocket", path.string(), "--bind", "127.0.0.1", "-::1"});
  RedisOptions named = options();
  named.addresses = {"localhost:" + std::to_string(redis_->port())};
  EXPECT_EQ(Call({"PING"}).on(*connected(named)).text, "PONG");
  named.addresses = {path.string()};
  EXPECT_EQ(Call({"PING"}).on(*connected(named)).text, "PONG");
  if (also.command({"PING"}, {"-h", "::1"}) == "PONG") {
    named.addresses = {"[::1]:" + std::to_string(also.port())};
    EXPECT_EQ(Call({"PING"}).on(*connected(named)).text, "PONG");
  }
}

TEST_F(RedisTransport, ANameThatDoesNotExistIsSaidToBeUnknown) {
  RedisOptions unknown = options();
  unknown.addresses = {"no-such-host.invalid:6379"};
  EXPECT_NE(refused(unknown).find("no-such-host.invalid"), std::string::npos);
}

TEST_F(RedisTransport, UserPasswordAndDatabaseAreUsed) {
  redis_->command({"ACL", "SETUSER", "ads", "on", ">secret", "~fcap:*", "+get", "+select"});
  redis_->command({"SET", "fcap:k", "in 3"}, {"-n", "3"});
  RedisOptions as_ads = options();
  as_ads.user = "ads";
  as_ads.password = "secret";
  as_ads.database = 3;
  const auto client = connected(as_ads);
  EXPECT_EQ(Call({"GET", "fcap:k"}).on(*client).text, "in 3");
  Call forbidden({"SET", "fcap:k", "x"});
  EXPECT_EQ(forbidden.on(*client).code, TransportCode::kOk);
  EXPECT_TRUE(forbidden.is_error);
  EXPECT_TRUE(forbidden.text.starts_with("NOPERM")) << forbidden.text;
}

TEST_F(RedisTransport, AStoreWhoseUserMayOnlyGetFallsBackFromMget) {
  redis_->command({"ACL", "SETUSER", "ads", "on", ">secret", "~*", "+get"});
  redis_->command({"MSET", "a", "A", "b", "B"});
  RedisOptions as_ads = options();
  as_ads.user = "ads";
  as_ads.password = "secret";
  auto store = make_redis_store(as_ads);
  ASSERT_TRUE(store.ok());
  // Both wait for the first connection, hence go out together.
  testing::WaitingCompletion a;
  testing::WaitingCompletion b;
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  store.value()->get("a", due, a);
  store.value()->get("b", due, b);
  EXPECT_EQ(a.wait().record, "A");
  EXPECT_EQ(b.wait().record, "B");
}

TEST_F(RedisTransport, AWrongPasswordIsToldInTheServersWords) {
  redis_->command({"CONFIG", "SET", "requirepass", "right"});
  RedisOptions wrong = options();
  wrong.password = "wrong";
  EXPECT_NE(refused(wrong).find("WRONGPASS"), std::string::npos);
  EXPECT_NE(refused(wrong).find("password"), std::string::npos);
  const std::string missing = refused(options());
  EXPECT_NE(missing.find("NOAUTH"), std::string::npos) << missing;
  EXPECT_NE(missing.find("option password"), std::string::npos) << missing;
  auto store = make_redis_store(wrong);
  ASSERT_TRUE(store.ok());
  const auto outcome = StoreCalls(*store.value()).get("k");
  EXPECT_EQ(outcome.code, StoreCode::kUnavailable);
  EXPECT_NE(store.value()->health().last_error.find("WRONGPASS"), std::string::npos)
      << store.value()->health().last_error;
  const std::lock_guard lock(log_mutex_);
  EXPECT_NE(log_.find("WRONGPASS"), std::string::npos) << log_;
}

TEST_F(RedisTransport, ADatabaseThatDoesNotExistIsToldByItsOption) {
  RedisOptions wrong = options();
  wrong.database = 99;
  const std::string why = refused(wrong);
  EXPECT_NE(why.find("option database"), std::string::npos) << why;
}

TEST_F(RedisTransport, ManyThreadsGetTheirOwnAnswers) {
  constexpr int kThreads = 8;
  constexpr int kEach = 2000;
  for (const std::size_t io_threads : {std::size_t{1}, std::size_t{3}}) {
    RedisOptions chosen = options();
    chosen.io_threads = io_threads;
    const auto client = connected(chosen);
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> threads;
      threads.reserve(kThreads);
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < kEach; ++i) {
            const std::string mine = std::to_string(t) + "/" + std::to_string(i);
            Call call({"ECHO", mine});
            call.slot = static_cast<std::uint16_t>(i);
            if (call.on(*client).code != TransportCode::kOk || call.text != mine) ++wrong;
          }
        });
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(client->connection_epoch(), io_threads);
  }
}

TEST_F(RedisTransport, CompareAndSetRacesLoseNothing) {
  constexpr int kClients = 2;
  constexpr int kEach = 300;
  const auto at = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()) +
                  std::chrono::hours{1};
  std::atomic<bool> failed{false};
  {
    std::vector<std::jthread> threads;
    threads.reserve(std::size_t{kClients} * 2);
    for (int t = 0; t < kClients * 2; ++t) {
      threads.emplace_back([&] {
        auto store = make_redis_store(options());
        StoreCalls calls(*store.value());
        for (int i = 0; i < kEach && !failed; ++i) {
          for (;;) {
            const auto before = calls.get("n");
            std::optional<std::string_view> expected;
            if (before.code == StoreCode::kOk) expected = before.record;
            const auto next = std::to_string(expected ? std::stoi(before.record) + 1 : 1);
            const auto code = calls.compare_and_set("n", expected, next, at).code;
            if (code == StoreCode::kOk) break;
            if (code != StoreCode::kConflict) {
              failed = true;
              break;
            }
          }
        }
      });
    }
    // Meanwhile the script is forgotten again and again.
    for (int i = 0; i < 20; ++i) redis_->command({"SCRIPT", "FLUSH"});
  }
  EXPECT_FALSE(failed);
  EXPECT_EQ(redis_->command({"GET", "n"}), std::to_string(kClients * 2 * kEach));
}

TEST_F(RedisTransport, WritersRacingForANewRecordLeaveTheLatestExpiry) {
  auto store = make_redis_store(options());
  auto other = make_redis_store(options());
  const auto base = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()) +
                    std::chrono::hours{1};
  for (int round = 0; round < 100; ++round) {
    const std::string key = "k" + std::to_string(round);
    std::vector<std::unique_ptr<testing::WaitingCompletion>> done;
    for (int i = 0; i < 8; ++i) {
      done.push_back(std::make_unique<testing::WaitingCompletion>());
      Store& through = i % 2 == 0 ? *store.value() : *other.value();
      through.append(key, "x", base + milliseconds{i * 7919 % 8},
                     std::chrono::steady_clock::now() + std::chrono::seconds{30}, *done.back());
    }
    for (auto& one : done) ASSERT_EQ(one->wait().code, StoreCode::kOk);
    ASSERT_EQ(redis_->command({"PEXPIRETIME", key}), std::to_string(to_ms(base + milliseconds{7})));
    ASSERT_EQ(redis_->command({"STRLEN", key}), "8");
  }
}

TEST_F(RedisTransport, MoreOperationsThanTheQueueHoldsAreRefusedAtOnce) {
  RedisOptions small = options();
  small.queue_operations_max = 1;
  const auto client = connected(small);
  redis_->freeze();
  Call first({"PING"});
  client->submit(first);
  Call second({"PING"});
  EXPECT_EQ(second.on(*client).code, TransportCode::kOverloaded);
  redis_->thaw();
  EXPECT_EQ(first.wait().code, TransportCode::kOk);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Call({"PING"}).on(*client).code, TransportCode::kOk);
}

TEST_F(RedisTransport, LargeValuesPassBothWays) {
  const auto client = connected(options());
  const std::string large(std::size_t{1} << 20U, 'x');
  EXPECT_EQ(Call({"SET", "k", large}).on(*client).text, "OK");
  EXPECT_EQ(Call({"GET", "k"}).on(*client).text, large);
  EXPECT_EQ(Call({"PING"}).on(*client).text, "PONG");
}

TEST_F(RedisTransport, CallbacksMaySubmitAgain) {
  class Chain final : public redis::Request {
   public:
    explicit Chain(Client& client) : client_(client) { redis::append_command(wire, {"INCR", "n"}); }
    void go() {
      deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
      client_.submit(*this);
    }
    void on_reply(std::uint32_t /*index*/, const redis::Reply& reply) noexcept override {
      value = reply.integer;
    }
    void on_done(TransportCode code) noexcept override {
      if (code == TransportCode::kOk && value < 1000) return go();
      done.release();
    }
    std::int64_t value = 0;
    std::binary_semaphore done{0};

   private:
    Client& client_;
  };
  const auto client = connected(options());
  Chain chain(*client);
  chain.go();
  chain.done.acquire();
  EXPECT_EQ(chain.value, 1000);
}

TEST_F(RedisTransport, ThreadsHaveNamesAndBlockAllSignals) {
  const auto client = connected(options());
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::map<std::string, std::string> fields;
    for (std::string line; std::getline(status, line);) {
      const auto tab = line.find(":\t");
      if (tab != std::string::npos) fields[line.substr(0, tab)] = line.substr(tab + 2);
    }
    if (!fields["Name"].starts_with("fcap-redis")) continue;
    ++found;
    const auto blocked = std::stoull(fields["SigBlk"], nullptr, 16);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGCHLD}) {
      EXPECT_NE(blocked >> static_cast<unsigned>(signal - 1) & 1U, 0U) << signal;
    }
  }
  EXPECT_EQ(found, 1);
}

TEST_F(RedisTransport, AForkedChildMayDestroyItsCopyAndTheParentIsUnharmed) {
  auto client = connected(options());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a hang ends the child by a signal, which the parent sees
    client.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Call({"PING"}).on(*client).text, "PONG");
  EXPECT_EQ(client->connection_epoch(), 1U);
}

}  // namespace transport_redis_test
}  // namespace fcap
