// Connections that become too old: a name or a virtual address may lead to another server by then,
// while the former one still answers.
#include <atomic>

#include <gtest/gtest.h>

#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/tcp_proxy.h"

namespace fcap {
namespace renewal_redis_test {

using namespace std::chrono_literals;
using redis::TransportCode;
using testing::connected;
using testing::quick_options;
using testing::RedisServer;
using testing::wait_until;
using Call = testing::RedisCall;

class RedisRenewal : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    latter_.emplace();
    redis_->command({"SET", "who", "former"});
    latter_->command({"SET", "who", "latter"});
    proxy_.emplace(redis_->port());
  }

  // By a name, or by an address, which needs no lookup.
  [[nodiscard]] RedisOptions options(const std::string& host = "127.0.0.1") const {
    RedisOptions options = quick_options(host + ":" + std::to_string(proxy_->port()));
    options.stale_reset = 30s;
    options.connect_timeout = 30s;
    options.connection_max_age = 1s;
    return options;
  }
  static std::string who(redis::Client& client) { return Call({"GET", "who"}).on(client).text; }

  std::optional<RedisServer> latter_;  // redis_ is the former
  std::optional<testing::TcpProxy> proxy_;
};

TEST_F(RedisRenewal, AnAddressThatHasMovedIsFollowedWithoutALostRequest) {
  const auto client = connected(options());
  ASSERT_EQ(who(*client), "former");
  std::atomic<int> lost{0};
  std::atomic<bool> done{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!done) {
        if (Call({"GET", "who"}).on(*client).code != TransportCode::kOk) ++lost;
      }
    });
  }
  proxy_->lead_to(latter_->port());
  EXPECT_TRUE(wait_until([&] { return who(*client) == "latter"; }));
  EXPECT_TRUE(client->connected());
  done = true;
  callers.clear();
  EXPECT_EQ(lost, 0);
  EXPECT_GE(client->health().connections, 2U);
  EXPECT_EQ(client->health().reconnects, 0U) << "none was lost";
}

TEST_F(RedisRenewal, ANameIsLookedUpAgain) {
  const auto client = connected(options("localhost"));
  ASSERT_EQ(who(*client), "former");
  proxy_->lead_to(latter_->port());
  EXPECT_TRUE(wait_until([&] { return who(*client) == "latter"; })) << "an idle one, too";
}

TEST_F(RedisRenewal, AServerThatCannotBeReachedByThenCostsNoConnection) {
  const auto client = connected(options());
  proxy_->refuse(true);
  EXPECT_TRUE(wait_until(
      [&] { return client->health().last_error.find("stays in use") != std::string::npos; }));
  EXPECT_TRUE(client->connected());
  EXPECT_EQ(who(*client), "former");
  EXPECT_EQ(client->health().reconnects, 0U);
  proxy_->lead_to(latter_->port());
  proxy_->refuse(false);
  EXPECT_TRUE(wait_until([&] { return who(*client) == "latter"; })) << "ten seconds later";
}

TEST_F(RedisRenewal, ZeroIsNever) {
  RedisOptions forever = options();
  forever.connection_max_age = 0ms;
  const auto client = connected(forever);
  const auto renewed = connected(options());
  proxy_->lead_to(latter_->port());
  EXPECT_TRUE(wait_until([&] { return who(*renewed) == "latter"; }));
  EXPECT_EQ(who(*client), "former") << "by now, one that is as old has been replaced";
}

}  // namespace renewal_redis_test
}  // namespace fcap
