#include <string>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "redis/address.h"
#include "redis/redis_options_check.h"
#include "redis/resolver.h"
#include "redis/sha1.h"

namespace fcap::redis {
namespace options_test {

TEST(Address, ReadsHostAndPortBracketsAndPaths) {
  EXPECT_EQ(parse_address("redis-1.example:6379").value().host, "redis-1.example");
  EXPECT_EQ(parse_address("10.0.0.1:1").value().port, 1);
  EXPECT_EQ(parse_address("[::1]:65535").value().host, "::1");
  EXPECT_EQ(parse_address("/run/redis.sock").value().path, "/run/redis.sock");
}

TEST(Address, RefusesWhatItCannotRead) {
  for (const std::string& text :
       {std::string(), std::string("localhost"), std::string(":6379"), std::string("h:0"),
        std::string("h:65536"), std::string("h:6379x"), std::string("h:"), std::string("::1:6379"),
        std::string("[]:6379"), std::string("a\nb:1"), std::string("a b:1"), std::string("%:1"),
        std::string("/a\x1b[2J"), "/" + std::string(200, 'x')}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(address.status().text().find("addresses"), std::string::npos);
    EXPECT_EQ(address.status().text().find_first_of("\n\x1b"), std::string::npos);
  }
}

TEST(Address, WithAnAccountIsRefusedAndNotShown) {
  const auto address = parse_address("app:hunter2@h:6379");
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.status().text().find("hunter2"), std::string::npos);
  EXPECT_NE(address.status().text().find("redis://user:password@host:port"), std::string::npos);
}

TEST(Address, NumbersNeedNoResolverAndNamesDo) {
  const auto v4 = numeric_endpoints(parse_address("127.0.0.1:7").value());
  ASSERT_EQ(v4.size(), 1U);
  EXPECT_EQ(v4.front().text(), "127.0.0.1:7");
  const auto v6 = numeric_endpoints(parse_address("[::1]:7").value());
  ASSERT_EQ(v6.size(), 1U);
  EXPECT_EQ(v6.front().text(), "[::1]:7");
  EXPECT_EQ(numeric_endpoints(parse_address("/x/y").value()).front().text(), "/x/y");
  EXPECT_TRUE(numeric_endpoints(parse_address("localhost:7").value()).empty());
}

// Breaks one option and gives the refusal.
template <typename Change>
std::string refusal(Change&& change) {
  RedisOptions options;
  change(options);
  const auto checked = check_options(options);
  if (checked.ok()) return "accepted";
  EXPECT_EQ(checked.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(checked.status().retryable());
  return checked.status().text();
}

TEST(RedisOptions, DefaultsAreAccepted) {
  EXPECT_TRUE(check_options({}).ok());
}

TEST(RedisOptions, AClusterHasSeveralAddresses) {
  RedisOptions options;
  options.topology = RedisTopology::kCluster;
  options.addresses = {"n1:6379", "[::1]:6380"};
  ASSERT_TRUE(check_options(options).ok()) << check_options(options).status().text();
  EXPECT_EQ(check_options(options).value().size(), 2U);
  EXPECT_EQ(place_of(options), "the cluster of n1:6379, [::1]:6380");
}

TEST(RedisOptions, ARefusalNamesTheOption) {
  using std::chrono::milliseconds;
  const auto names = [](const std::string& text, const std::string& option) {
    return text.starts_with("redis " + option) ? "" : text;
  };
  EXPECT_EQ(names(refusal([](auto& o) { o.addresses.clear(); }), "addresses"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.addresses = {"a:1", "b:1"}; }), "addresses"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.user = "u"; }), "user"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.sentinel_user = "u"; }), "sentinel_user"), "");
  EXPECT_EQ(names(refusal([](auto& o) {
                    o.topology = RedisTopology::kCluster;
                    o.database = 1;
                  }),
                  "database"),
            "");
  EXPECT_EQ(names(refusal([](auto& o) {
                    o.topology = RedisTopology::kCluster;
                    o.addresses = {"/run/redis.sock"};
                  }),
                  "addresses"),
            "");
  EXPECT_EQ(
      names(refusal([](auto& o) { o.topology = RedisTopology::kSentinel; }), "sentinel_master"),
      "");
  EXPECT_EQ(names(refusal([](auto& o) { o.sentinel_master = "m"; }), "sentinel_master"), "");
  EXPECT_EQ(names(refusal([](auto& o) {
                    o.topology = RedisTopology::kSentinel;
                    o.sentinel_master = "m";
                    o.addresses = {"/run/sentinel.sock"};
                  }),
                  "addresses"),
            "");
  EXPECT_EQ(names(refusal([](auto& o) { o.replica_reads = RedisReplicaReads::kWhenMasterFails; }),
                  "replica_reads"),
            "");
  EXPECT_EQ(
      names(refusal([](auto& o) { o.replica_lag_max = milliseconds{1999}; }), "replica_lag_max"),
      "");
  EXPECT_EQ(names(refusal([](auto& o) {
                    o.topology = RedisTopology::kSentinel;
                    o.sentinel_master = "m";
                    o.replica_reads = RedisReplicaReads::kNearest;
                    o.master_only = true;
                  }),
                  "replica_reads"),
            "");
  EXPECT_EQ(names(refusal([](auto& o) { o.database = -1; }), "database"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.connect_timeout = milliseconds{0}; }), "connect_timeout"),
            "");
  EXPECT_EQ(names(refusal([](auto& o) { o.stale_reset = milliseconds{-1}; }), "stale_reset"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.reconnect_backoff_min = milliseconds{3000}; }),
                  "reconnect_backoff"),
            "");
  EXPECT_EQ(
      names(refusal([](auto& o) { o.breaker_backoff_min = milliseconds{0}; }), "breaker_backoff"),
      "");
  EXPECT_EQ(names(refusal([](auto& o) { o.io_threads = 0; }), "io_threads"), "");
  EXPECT_EQ(names(refusal([](auto& o) { o.queue_operations_max = 0; }), "queue_operations_max"),
            "");
  EXPECT_EQ(names(refusal([](auto& o) { o.mget_keys_max = 0; }), "mget_keys_max"), "");
}

TEST(Sha1, GivesTheStandardsExamples) {
  const auto hex = [](std::string_view text) {
    const auto digits = sha1_hex(text);
    return std::string(digits.begin(), digits.end());
  };
  EXPECT_EQ(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

}  // namespace options_test
}  // namespace fcap::redis
