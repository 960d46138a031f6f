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

}  // namespace fcap::testing
