#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <fcap/redis_url.h>

#include "support/cluster_load.h"
#include "support/redis_clients.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"

namespace fcap::testing {

/// Whether all attempts to connect fail, and tell why.
inline ::testing::AssertionResult is_refused(const RedisOptions& options, const std::string& why) {
  auto client = redis::Client::create(options);
  if (!client.ok()) return ::testing::AssertionFailure() << client.status().text();
  const auto error = [&] { return client.value()->last_error(); };
  if (!wait_until([&] { return error().find(why) != std::string::npos; })) {
    return ::testing::AssertionFailure() << error();
  }
  if (client.value()->connected()) return ::testing::AssertionFailure() << "it is connected";
  return ::testing::AssertionSuccess();
}

/// Quick options that reach what the URL names, and patience with servers on a busy machine.
inline RedisOptions options_of(const std::string& url) {
  RedisOptions patient = quick_options({});
  patient.connect_timeout = patient.stale_reset = std::chrono::seconds{30};
  auto parsed = parse_redis_url(url, patient);
  EXPECT_TRUE(parsed.ok()) << parsed.status().text();
  return parsed.ok() ? parsed.value() : RedisOptions{};
}

/// A cluster for each test, and a Store on it.
class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    cluster_ = std::make_unique<RedisCluster>();
    open(options());
  }

  [[nodiscard]] RedisOptions options(const std::string& parameters = {}) const {
    return options_of(cluster_->url() + parameters);
  }

  /// Makes the store, and waits until it reaches every shard.
  void open(const RedisOptions& options) {
    store_.reset();
    auto made = make_redis_store(options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      const std::string key = "fcap:{" + RedisCluster::user_of(shard) + "}";
      EXPECT_TRUE(wait_until([&] {
        return StoreCalls(*store_).get(key).code == StoreCode::kNotFound;
      })) << store_->health().last_error;
    }
  }

  /// A number of the health report.
  [[nodiscard]] static std::size_t value_of(const StoreHealth& health, const std::string& name) {
    for (const auto& [known, value] : health.more) {
      if (known == name) return std::stoull(value);
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  /// Users of all shards.
  static std::vector<std::string> users(std::size_t count) {
    return RedisCluster::users_in({0, 16383}, count);
  }

  /// Nothing went wrong, and every entry is there once.
  static void expect_all_well(ClusterLoad& load) {
    load.stop();
    const ClusterLoad::Seen seen = load.seen();
    EXPECT_EQ(seen.failures, 0U) << "of " << seen.operations << seen.first_failures;
    expect_none_lost(load);
  }
  /// Some operations may have failed, but those that succeeded hold.
  static void expect_none_lost(ClusterLoad& load) {
    load.stop();
    for (const ClusterLoad::Seen& seen : {load.seen(), load.verify()}) {
      EXPECT_EQ(seen.lost, 0U);
      EXPECT_EQ(seen.foreign, 0U);
    }
    EXPECT_EQ(load.verify().failures, 0U);
  }

  std::unique_ptr<RedisCluster> cluster_;
  std::unique_ptr<Store> store_;
};

}  // namespace fcap::testing
