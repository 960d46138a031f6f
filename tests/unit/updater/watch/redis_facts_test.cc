// What Redis says of itself, and what to change about it.
#include "updater/watch/redis_facts.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::updater {
namespace redis_facts_test {

using ::testing::HasSubstr;

Findings judge_info(const std::string& info) {
  return judge_redis(parse_redis_info(info));
}

TEST(RedisFactsTest, AServerThatIsTooOldIsNamedWithWhatItLacks) {
  for (const std::string version : {"6.2.14", "6.0.16", "5.0.3"}) {
    const Findings found = judge_info("# Server\r\nredis_version:" + version +
                                      "\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n");
    ASSERT_EQ(found.size(), 1U) << version;
    EXPECT_EQ(found[0].level, Finding::FindingLevel::kError);
    EXPECT_THAT(found[0].text, HasSubstr("the server is Redis " + version + ": use 7.0 or later"));
  }
}

TEST(RedisFactsTest, LaterVersionsAreWell) {
  for (const std::string version : {"7.0.0", "7.4.2", "8.0.1", "10.1.0"}) {
    const Findings found = judge_info("redis_version:" + version +
                                      "\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n");
    ASSERT_EQ(found.size(), 1U) << version;
    EXPECT_EQ(found[0].level, Finding::FindingLevel::kOk) << found[0].text;
  }
}

TEST(RedisFactsTest, AReplicaAndKeysThatWereEvictedAreNamed) {
  const Findings found = judge_info(
      "redis_version:7.0.15\r\nrole:slave\r\nmaxmemory:104857600\r\n"
      "maxmemory_policy:volatile-ttl\r\nevicted_keys:12\r\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0].text, HasSubstr("the server is a replica"));
  EXPECT_THAT(found[1].text, HasSubstr("maxmemory-policy is volatile-ttl: set it to noeviction"));
  EXPECT_THAT(found[2].text, HasSubstr("evicted_keys is 12"));
  EXPECT_EQ(found[2].level, Finding::FindingLevel::kWarning);
}

}  // namespace redis_facts_test
}  // namespace fcap::updater
