#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "support/checker_world.h"
#include "support/redis_server.h"

namespace fcap::testing {

/// A Redis with a Checker's surroundings for each test. Skipped without redis-server, as RedisTest.
class CheckerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    world_ = std::make_unique<CheckerWorld>();
  }

  std::unique_ptr<CheckerWorld> world_;
};

/// Each test twice: with direct connections, and with blocking checks through the I/O thread.
class CheckerBothWaysTest : public CheckerTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  void SetUp() override {
    CheckerTest::SetUp();
    if (world_) world_->direct_connections = GetParam();
  }
};

/// FCAP_BOTH_WAYS(a test suite);
#define FCAP_BOTH_WAYS(suite)                                          \
  INSTANTIATE_TEST_SUITE_P(                                            \
      Reads, suite, ::testing::Values(std::size_t{0}, std::size_t{2}), \
      [](const auto& test) { return test.param == 0 ? "ByTheIoThread" : "Directly"; })

}  // namespace fcap::testing
