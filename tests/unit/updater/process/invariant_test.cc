#include "updater/process/invariant.h"

#include <gtest/gtest.h>

#include "updater/process/process_log.h"

namespace fcap::updater {
namespace invariant_test {

TEST(InvariantDeathTest, AnInvariantThatDoesNotHoldEndsTheProcessWithItsSentence) {
  const auto break_one = [] {
    configure_logging({});
    must_hold(true, "what holds says nothing");
    must_hold(false, "a mark is never ahead");
  };
  EXPECT_EXIT(break_one(), ::testing::KilledBySignal(SIGABRT),
              "does not hold and must: a mark is never ahead .*invariant_test.cc");
}

}  // namespace invariant_test
}  // namespace fcap::updater
