#include "updater/pipeline/known_records.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace known_records_test {

using std::chrono::milliseconds;

constexpr Instant kExpiry = instant_from_ms(1'700'000'000'000);

TEST(KnownRecords, ALengthIsKnownOnlyWhereTheExpiryIsLateEnough) {
  KnownRecords known(16);
  EXPECT_FALSE(known.length(1, kExpiry));
  known.learn(1, 40, kExpiry);
  EXPECT_EQ(known.length(1, kExpiry), 40U);
  EXPECT_FALSE(known.length(1, kExpiry + milliseconds{1}));
}

TEST(KnownRecords, AnExpiryBetweenTwoSecondsCountsAsTheEarlier) {
  KnownRecords known(16);
  known.learn(1, 40, kExpiry + milliseconds{999});
  EXPECT_TRUE(known.length(1, kExpiry));
  EXPECT_FALSE(known.length(1, kExpiry + milliseconds{1}));
}

TEST(KnownRecords, AWriteUnderWayChangesTheLengthAndNotTheExpiry) {
  KnownRecords known(16);
  known.will_be(1, 60);  // of a record that nothing is known of
  EXPECT_FALSE(known.length(1, kExpiry));
  known.learn(1, 40, kExpiry);
  known.will_be(1, 60);
  EXPECT_EQ(known.length(1, kExpiry), 60U);
}

TEST(KnownRecords, RecordsPushOneAnotherOutAndAreForgotten) {
  KnownRecords known(16);
  known.learn(1, 40, kExpiry);
  known.learn(17, 50, kExpiry);  // the same place
  EXPECT_FALSE(known.length(1, kExpiry));
  EXPECT_EQ(known.length(17, kExpiry), 50U);
  known.forget(1);
  EXPECT_TRUE(known.length(17, kExpiry));
  known.forget(17);
  EXPECT_FALSE(known.length(17, kExpiry));
  known.learn(2, 40, kExpiry);
  known.clear();
  EXPECT_FALSE(known.length(2, kExpiry));
}

}  // namespace known_records_test
}  // namespace fcap::updater
