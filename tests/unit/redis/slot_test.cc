#include <gtest/gtest.h>

#include "redis/client.h"

namespace fcap::redis {
namespace {

TEST(Slot, MatchesTheClusterSpecificationsCheckValue) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % 16384);
}

TEST(Slot, OnlyTheFirstNonEmptyHashTagCounts) {
  EXPECT_EQ(slot_of("fcap:{user1000}"), slot_of("user1000"));
  EXPECT_EQ(slot_of("a{user1000}b{other}"), slot_of("user1000"));
  EXPECT_NE(slot_of("fcap:{}user1000"), slot_of("user1000"));
  EXPECT_NE(slot_of("fcap:{user1000"), slot_of("user1000"));
}

}  // namespace
}  // namespace fcap::redis
