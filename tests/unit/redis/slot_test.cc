#include <string>

#include <gtest/gtest.h>

#include "redis/client.h"

namespace fcap::redis {
namespace slot_test {

TEST(Slot, MatchesTheClusterSpecificationsCheckValue) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % 16384);
}

TEST(Slot, OnlyTheFirstNonEmptyHashTagCounts) {
  EXPECT_EQ(slot_of("fcap:{user1000}"), slot_of("user1000"));
  EXPECT_EQ(slot_of("a{user1000}b{other}"), slot_of("user1000"));
  EXPECT_NE(slot_of("fcap:{}user1000"), slot_of("user1000"));
  EXPECT_NE(slot_of("fcap:{user1000"), slot_of("user1000"));
}

TEST(Slot, IsTheBitwiseCrcForEveryLength) {
  std::string key;
  for (int length = 0; length < 70; ++length) {
    unsigned crc = 0;
    for (const char character : key) {
      crc ^= static_cast<unsigned>(static_cast<unsigned char>(character)) << 8U;
      for (int bit = 0; bit < 8; ++bit)
        crc = (crc & 0x8000U) != 0 ? crc << 1U ^ 0x1021U : crc << 1U;
      crc &= 0xFFFFU;
    }
    EXPECT_EQ(slot_of(key), crc % 16384) << length;
    const char next = static_cast<char>(length * 89 + 1);
    key.push_back(next == '{' ? '!' : next);
  }
}

}  // namespace slot_test
}  // namespace fcap::redis
