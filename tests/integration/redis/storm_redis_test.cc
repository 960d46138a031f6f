// A thousand clients of one Redis that goes and comes back: all of them find it again, and none by
// knocking without end.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/redis_clients.h"
#include "support/redis_server.h"

namespace fcap {
namespace storm_redis_test {

using namespace std::chrono_literals;
using redis::Client;
using testing::RedisServer;
using testing::wait_until;

// How many connections Redis has accepted since it was started.
long long accepted(const RedisServer& redis) {
  const std::string stats = redis.command({"INFO", "stats"});
  constexpr std::string_view kName = "total_connections_received:";
  return std::stoll(stats.substr(stats.find(kName) + kName.size()));
}

TEST(RedisStorm, SOAK_AThousandClientsComeBackAfterARestart) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  constexpr std::size_t kClients = testing::kClientsOfAStorm;
  RedisServer redis;
  RedisOptions options;
  options.addresses = {redis.address()};
  // Whoever waits long for an answer on a crowded machine goes on waiting, and does not knock
  // again.
  options.connect_timeout = 60s;
  options.stale_reset = 60s;
  std::atomic<std::size_t> refused_twice{0};
  options.log = [&](LogLevel, std::string_view line) {
    if (line.find("cannot connect") == std::string_view::npos) return;
    if (line.find("(2 times)") != std::string_view::npos) ++refused_twice;
  };
  const auto clients = testing::clients_of_a_storm(kClients, options);
  const auto connected = [&] {
    return std::count_if(clients.begin(), clients.end(),
                         [](const auto& client) { return client->connected(); });
  };
  ASSERT_TRUE(wait_until([&] { return connected() == kClients; }, 120s)) << connected();

  redis.kill();
  ASSERT_TRUE(wait_until([&] { return connected() == 0; }, 120s)) << connected();
  // Most of them have been refused a few times.
  ASSERT_TRUE(wait_until([&] { return refused_twice >= kClients / 2; }, 120s)) << refused_twice;
  redis.start();
  ASSERT_TRUE(wait_until([&] { return connected() == kClients; }, 120s)) << connected();
  for (const auto& client : clients) {
    EXPECT_EQ(testing::RedisCall({"PING"}, 30s).on(*client).text, "PONG");
  }
  // One each, and those of redis-cli and of scripts/service.
  EXPECT_LE(accepted(redis), static_cast<long long>(2 * kClients));
}

}  // namespace storm_redis_test
}  // namespace fcap
