#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "support/whole_path.h"

namespace fcap::testing {

/// All servers with a running updater between them, for all tests of a suite. Without them the
/// tests are skipped; a fixture that overrides SetUp() calls this one's and returns if IsSkipped().
class WholePathTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!WholePath::available()) return;
    servers = std::make_unique<WholePath>();
    servers->start_updater();
  }
  static void TearDownTestSuite() { servers.reset(); }

  void SetUp() override {
    if (!servers) GTEST_SKIP() << "redis-server, java, mvn or PostgreSQL is missing";
  }

  static inline std::unique_ptr<WholePath> servers;
};

}  // namespace fcap::testing
