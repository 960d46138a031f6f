#pragma once

#include <memory>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>
#include <fcap/store.h>

#include "support/redis_server.h"
#include "support/store_calls.h"

namespace fcap::testing {

/// A store on this Redis, connected.
inline std::unique_ptr<Store> connected_store(const RedisServer& redis) {
  RedisOptions options;
  options.addresses = {redis.address()};
  auto made = make_redis_store(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  std::unique_ptr<Store> store = std::move(made).value();
  EXPECT_TRUE(
      wait_until([&] { return StoreCalls(*store).get("none").code == StoreCode::kNotFound; }));
  return store;
}

/// A Redis for each test. Without redis-server the tests are skipped; a fixture that overrides
/// SetUp() calls this one's and returns if IsSkipped().
class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    redis_ = std::make_unique<RedisServer>();
  }

  std::unique_ptr<RedisServer> redis_;
};

}  // namespace fcap::testing
