#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/redis_url.h>

#include "redis/redis_options_check.h"

namespace fcap::redis {
namespace redis_url_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RedisOptions read(const std::string& text, RedisOptions base = {}) {
  auto options = parse_redis_url(text, std::move(base));
  EXPECT_TRUE(options.ok()) << text << ": " << options.status().text();
  if (!options.ok()) return {};
  const auto checked = check_options(options.value());
  EXPECT_TRUE(checked.ok()) << text << ": " << checked.status().text();
  return options.value();
}

std::string refusal(const std::string& text) {
  const auto options = parse_redis_url(text);
  EXPECT_FALSE(options.ok()) << text;
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument) << text;
  return options.status().text();
}

TEST(RedisUrl, NamesASingleServer) {
  const RedisOptions options = read("redis://caps%40home:s%3A%2Fcret:1@cache1:7000/3");
  EXPECT_EQ(options.topology, RedisTopology::kSingle);
  EXPECT_THAT(options.addresses, ElementsAre("cache1:7000"));
  EXPECT_EQ(options.user, "caps@home");
  EXPECT_EQ(options.password, "s:/cret:1");
  EXPECT_EQ(options.database, 3);
}

TEST(RedisUrl, NamesSentinelsAndTheirMaster) {
  const RedisOptions options =
      read("redis-sentinel://writer:secret@s1:26000,[::1],s3/caps%2Fads/2");
  EXPECT_EQ(options.topology, RedisTopology::kSentinel);
  EXPECT_THAT(options.addresses, ElementsAre("s1:26000", "[::1]:26379", "s3:26379"));
  EXPECT_EQ(options.sentinel_master, "caps/ads");
  EXPECT_EQ(options.user, "writer");
  EXPECT_EQ(options.password, "secret");
  EXPECT_EQ(options.database, 2);
}

TEST(RedisUrl, NamesNodesOfACluster) {
  const RedisOptions options = read("redis-cluster://user:secret@n1:7000,[::1],n3");
  EXPECT_EQ(options.topology, RedisTopology::kCluster);
  EXPECT_THAT(options.addresses, ElementsAre("n1:7000", "[::1]:6379", "n3:6379"));
  EXPECT_EQ(options.user, "user");
  EXPECT_FALSE(options.tls.enabled);
  EXPECT_EQ(read("redis-cluster://n1/0").database, 0);
  EXPECT_TRUE(read("rediss-cluster://n1").tls.enabled);
  for (const char* text : {"redis-cluster://n1,n2?replica_reads=nearest",
                           "redis-cluster://n1,n2/?replica_reads=nearest",
                           "redis-cluster://n1,n2/0?replica_reads=nearest"}) {
    EXPECT_EQ(read(text).replica_reads, RedisReplicaReads::kNearest);
    EXPECT_THAT(read(text).addresses, ElementsAre("n1:6379", "n2:6379"));
  }
}

TEST(RedisUrl, WhatItDoesNotSayStays) {
  RedisOptions base;
  base.user = "u";
  base.password = "p";
  base.database = 4;
  base.sentinel_password = "s";
  base.connect_timeout = std::chrono::milliseconds{77};
  const RedisOptions options = read("redis-sentinel://s1/m", base);
  EXPECT_EQ(options.user, "u");
  EXPECT_EQ(options.password, "p");
  EXPECT_EQ(options.database, 4);
  EXPECT_EQ(options.sentinel_password, "s");
  EXPECT_EQ(options.connect_timeout, std::chrono::milliseconds{77});
  EXPECT_EQ(read("redis://u2@h", base).user, "u2");
}

TEST(RedisUrl, TheSchemesWithADoubleSAskForTls) {
  EXPECT_TRUE(read("rediss://h").tls.enabled);
  EXPECT_TRUE(read("rediss-sentinel://h/m").tls.enabled);
  EXPECT_EQ(read("rediss-sentinel://h/m").topology, RedisTopology::kSentinel);
  EXPECT_FALSE(read("redis://h").tls.enabled);
}

TEST(RedisUrl, ParametersSayWhetherReplicasAreRead) {
  EXPECT_EQ(read("redis-sentinel://h/m?").replica_reads, RedisReplicaReads::kNever);
  const RedisOptions options =
      read("redis-sentinel://h/m/2?replica_reads=when_master_fails&replica_lag_max=30s");
  EXPECT_EQ(options.replica_reads, RedisReplicaReads::kWhenMasterFails);
  EXPECT_EQ(options.replica_lag_max, std::chrono::seconds{30});
  EXPECT_EQ(options.database, 2);
  EXPECT_EQ(read("redis-sentinel://h/m?replica_reads=nearest").replica_reads,
            RedisReplicaReads::kNearest);
  EXPECT_EQ(read("redis-sentinel://h/m?replica_reads=never", options).replica_reads,
            RedisReplicaReads::kNever);
}

TEST(RedisUrl, AnAddressIsTakenToo) {
  EXPECT_THAT(read("cache1").addresses, ElementsAre("cache1:6379"));
  EXPECT_THAT(read("cache1:7000").addresses, ElementsAre("cache1:7000"));
  EXPECT_THAT(read("[::1]").addresses, ElementsAre("[::1]:6379"));
  EXPECT_THAT(read("[fe80::1%eth0]").addresses, ElementsAre("[fe80::1%eth0]:6379"));
  EXPECT_THAT(read("/run/redis.sock").addresses, ElementsAre("/run/redis.sock"));
}

TEST(RedisUrl, ARefusalSaysWhatIsWrong) {
  EXPECT_THAT(refusal("redis:///1"), HasSubstr("no host"));
  EXPECT_THAT(refusal("redis://h/one"), HasSubstr("\"one\" is not the number of a database"));
  EXPECT_THAT(refusal("redis://h/-1"), HasSubstr("\"-1\""));
  EXPECT_THAT(refusal("redis://h:0"), HasSubstr("\"h:0\""));
  EXPECT_THAT(refusal("redis://h1,h2"), HasSubstr("redis-cluster://"));
  EXPECT_THAT(refusal("redis-cluster://h1,h2/1"), HasSubstr("a cluster has only database 0"));
  EXPECT_THAT(refusal("redis-cluster://h1?x=1"), HasSubstr("the parameter \"x\""));
  EXPECT_THAT(refusal("redis://h1,h2"), HasSubstr("redis-sentinel://"));
  EXPECT_THAT(refusal("redis://h?x=1"), HasSubstr("parameters"));
  EXPECT_THAT(refusal("redis://h/1?replica_reads=nearest"), HasSubstr("redis-sentinel:// only"));
  EXPECT_THAT(refusal("redis-sentinel://h/m?x=1"), HasSubstr("the parameter \"x\""));
  EXPECT_THAT(refusal("redis-sentinel://h/m?replica_reads"), HasSubstr("must be one of never"));
  EXPECT_THAT(refusal("redis-sentinel://h/m?replica_lag_max=1s"), HasSubstr("from 2s to 60s"));
  EXPECT_THAT(refusal("redis-sentinel://h/m#x"), HasSubstr("\"#\""));
  EXPECT_THAT(refusal("redis-sentinel://h1,h2"), HasSubstr("does not name the master"));
  EXPECT_THAT(refusal("redis-sentinel://h1,h2//1"), HasSubstr("does not name the master"));
  EXPECT_THAT(refusal("redis-sentinel://h1,,h2/m"), HasSubstr("\"\" is not host"));
  EXPECT_THAT(refusal("redis-sentinel://h1,/m"), HasSubstr("\"\" is not host"));
  EXPECT_THAT(refusal("redis-sentinel://h1/m/x"), HasSubstr("\"x\""));
  EXPECT_THAT(refusal("redis://%"), HasSubstr("\"%\" is not host"));
  EXPECT_THAT(refusal("redis://h\nh"), HasSubstr("is not host"));
  EXPECT_THAT(refusal("redis://h\nh"), Not(HasSubstr("\n")));
  EXPECT_THAT(refusal("http://h"), HasSubstr("scheme"));
  EXPECT_THAT(refusal(""), HasSubstr("addresses"));
}

TEST(RedisUrl, ARefusalDoesNotTellThePassword) {
  for (const char* text :
       {"redis://u:secret@h:x", "redis://u:secret%@h", "redis://u:secret@/1",
        "redis://u:secret/2@h", "redis-sentinel://u:secret@h", "redis+tls://u:secret@h"}) {
    EXPECT_THAT(refusal(text), Not(HasSubstr("secret")));
  }
}

}  // namespace redis_url_test
}  // namespace fcap::redis
