#include "redis/replica_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/replica_list.h"
#include "redis/resp_parser.h"

namespace fcap::redis {
namespace replica_watch_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using TimePoint = ReplicaWatch::TimePoint;

constexpr TimePoint kStart{1000s};

// A master and its replica, which are asked once per second.
class Replica : public ::testing::Test {
 protected:
  ReplicaWatch watch{RedisReplicaReads::kWhenMasterFails, 10s};
  TimePoint now = kStart;

  void master_at(std::int64_t position, std::chrono::milliseconds takes = 1ms) {
    watch.note_master({.asked_at = now, .answered_at = now + takes, .position = position});
  }
  void replica_at(std::int64_t position, bool link_up = true,
                  std::chrono::milliseconds takes = 1ms) {
    watch.note_replica(
        {.asked_at = now, .answered_at = now + takes, .position = position, .link_up = link_up});
  }
};

TEST_F(Replica, StandsInForAMasterThatIsLostFor60Seconds) {
  master_at(100);
  replica_at(100);
  EXPECT_FALSE(watch.may_read(now));
  watch.on_master_lost(now + 500ms);
  EXPECT_TRUE(watch.may_read(now + 500ms));
  EXPECT_EQ(watch.until(), now + 60'500ms);
  EXPECT_TRUE(watch.may_read(now + 60'499ms));
  EXPECT_FALSE(watch.may_read(now + 60'500ms));
}

TEST_F(Replica, IsLeftAsSoonAsThereIsAMasterAndJudgedAnewByIt) {
  master_at(100);
  replica_at(100);
  watch.on_master_lost(now);
  watch.on_master_found();
  EXPECT_FALSE(watch.may_read(now));
  watch.on_master_lost(now);
  EXPECT_FALSE(watch.may_read(now)) << "it was never seen together with that master";
}

TEST_F(Replica, ThatWasNeverSeenIsNotRead) {
  watch.on_master_lost(now);
  EXPECT_FALSE(watch.may_read(now));
  // What it says once the master is lost does not count.
  replica_at(100);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, IsAsFarBehindAsTheNewestPositionThatItHasReached) {
  master_at(100);
  now += 6s;
  master_at(200);
  now += 4s;
  master_at(300);
  replica_at(199);
  EXPECT_TRUE(watch.is_well(now)) << "it has all that was written 10 s ago";
  EXPECT_FALSE(watch.is_well(now + 1ms));
  replica_at(200);
  EXPECT_TRUE(watch.is_well(now + 6s));
  EXPECT_THAT(watch.state_text(now), HasSubstr("4000 ms behind"));
  replica_at(99);
  EXPECT_FALSE(watch.is_well(now));
  watch.on_master_lost(now);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, OfAMasterThatWritesNothingIsNotBehind) {
  for (int i = 0; i < 300; ++i) {
    master_at(100);
    now += 1s;
  }
  replica_at(100);
  EXPECT_TRUE(watch.is_well(now + 9s));
}

TEST_F(Replica, IsTooFarBehindWhenItHasNotBeenSeenForTooLong) {
  master_at(100);
  replica_at(100);
  watch.on_master_lost(now + 10'001ms);
  EXPECT_FALSE(watch.may_read(now + 10'001ms));
}

TEST_F(Replica, WhoseLinkIsDownIsNotRead) {
  master_at(100);
  replica_at(100);
  replica_at(100, false);
  EXPECT_FALSE(watch.is_well(now));
  EXPECT_THAT(watch.state_text(now), HasSubstr("link to the master is down"));
  now += 3s;
  replica_at(100, false);
  watch.on_master_lost(now);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, MayLoseItsLinkBecauseTheMasterIsGone) {
  master_at(100);
  replica_at(100);
  now += 1s;
  replica_at(100, false);
  watch.on_master_lost(now + 100ms);
  EXPECT_TRUE(watch.may_read(now + 100ms));
}

TEST_F(Replica, WhoseLinkIsUpAgainIsReadAgain) {
  master_at(100);
  replica_at(100, false);
  replica_at(100);
  EXPECT_TRUE(watch.is_well(now));
}

TEST_F(Replica, IsNotComparedWithAStreamThatHasBegunAgain) {
  master_at(100'000);
  master_at(50);
  replica_at(40);
  EXPECT_FALSE(watch.is_well(now));
  replica_at(50);
  EXPECT_TRUE(watch.is_well(now));
}

TEST_F(Replica, IsForgottenWhenAnotherTakesItsPlace) {
  master_at(100);
  replica_at(100);
  watch.forget_replica();
  watch.on_master_lost(now);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, ThatIsNearerIsReadWhileItIsWell) {
  watch = ReplicaWatch(RedisReplicaReads::kNearest, 10s);
  master_at(100, 10ms);
  EXPECT_FALSE(watch.may_read(now));
  replica_at(100, true, 1ms);
  EXPECT_TRUE(watch.may_read(now));
  EXPECT_EQ(watch.until(), now + 10s);
  EXPECT_FALSE(watch.may_read(now + 10'001ms));
  replica_at(100, false, 1ms);
  EXPECT_FALSE(watch.may_read(now)) << "its link is down";
}

TEST_F(Replica, AndItsMasterAreNotSwappedForALittle) {
  watch = ReplicaWatch(RedisReplicaReads::kNearest, 10s);
  master_at(100, 10ms);
  replica_at(100, true, 9ms);
  EXPECT_FALSE(watch.may_read(now));
  for (int i = 0; i < 30; ++i) replica_at(100, true, 5ms);
  EXPECT_TRUE(watch.may_read(now));
  for (int i = 0; i < 30; ++i) replica_at(100, true, 11ms);
  EXPECT_TRUE(watch.may_read(now));
  for (int i = 0; i < 30; ++i) replica_at(100, true, 15ms);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, IsNearerThanAMasterThatDoesNotAnswer) {
  watch = ReplicaWatch(RedisReplicaReads::kNearest, 10s);
  master_at(100, 1ms);
  replica_at(100, true, 1ms);
  EXPECT_FALSE(watch.may_read(now));
  watch.note_master_silent(now, now + 100ms);
  EXPECT_TRUE(watch.may_read(now));
  watch.note_replica_silent(now, now + 200ms);
  EXPECT_FALSE(watch.may_read(now));
}

TEST_F(Replica, ThatIsFartherIsReadOnlyWhenTheMasterFails) {
  watch = ReplicaWatch(RedisReplicaReads::kNearest, 10s);
  master_at(100, 1ms);
  replica_at(100, true, 10ms);
  EXPECT_FALSE(watch.may_read(now));
  watch.on_master_lost(now);
  EXPECT_TRUE(watch.may_read(now));
}

std::string texts(const Result<std::vector<Address>>& addresses) {
  if (!addresses.ok()) return addresses.status().text();
  std::string all;
  for (const Address& address : addresses.value()) all += address.text + " ";
  return all;
}

std::string listed(const std::string& reply) {
  RespParser parser;
  EXPECT_EQ(parser.parse(reply), RespParser::ParseOutcome::kReply);
  return texts(read_replica_addresses(parser.reply()));
}

std::string replica(const std::string& ip, const std::string& port, const std::string& flags) {
  const auto word = [](const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  return "*6\r\n" + word("ip") + word(ip) + word("port") + word(port) + word("flags") + word(flags);
}

TEST(ReplicaList, HasThoseThatAreNotDown) {
  EXPECT_EQ(listed("*0\r\n"), "");
  EXPECT_EQ(listed("*5\r\n" + replica("10.0.0.1", "6379", "slave") +
                   replica("10.0.0.2", "6379", "s_down,slave") +
                   replica("10.0.0.3", "6379", "slave,disconnected") +
                   replica("::1", "6380", "slave") + replica("?", "0", "slave")),
            "10.0.0.1:6379 [::1]:6380 ");
}

TEST(ReplicaList, ARefusalNamesWhatToAllow) {
  EXPECT_THAT(listed("-NOPERM no permissions\r\n"), HasSubstr("sentinel|replicas"));
  EXPECT_THAT(listed("+OK\r\n"), HasSubstr("as a Sentinel does"));
  EXPECT_EQ(listed("*2\r\n*0\r\n:1\r\n"), "");
}

}  // namespace replica_watch_test
}  // namespace fcap::redis
