// What the command takes for settings: URLs, relative times, the updater's configuration; and what
// it makes of ids on a terminal.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/arguments.h"
#include "cli/instants.h"
#include "cli/redis_access.h"
#include "cli/updater_config.h"
#include "command.h"
#include "test_paths.h"

namespace fcap::cli_test {
namespace settings_test {

using cli::parse_at;
using cli::redis_target;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RedisOptions target_of(const std::string& redis) {
  cli::AccessSettings access;
  access.redis = redis;
  const auto target = redis_target(access, "of-the-file");
  EXPECT_TRUE(target.ok()) << redis << ": " << target.status().text();
  return target.ok() ? target.value() : RedisOptions{};
}

std::string refusal_of(const std::string& redis) {
  cli::AccessSettings access;
  access.redis = redis;
  const auto target = redis_target(access, {});
  EXPECT_FALSE(target.ok()) << redis;
  return target.status().text();
}

TEST(RedisTarget, APortMayBeLeftOut) {
  EXPECT_THAT(target_of("cache1").addresses, ElementsAre("cache1:6379"));
  EXPECT_THAT(target_of("cache1:7000").addresses, ElementsAre("cache1:7000"));
  EXPECT_THAT(target_of("[::1]").addresses, ElementsAre("[::1]:6379"));
  EXPECT_THAT(target_of("[::1]:7000").addresses, ElementsAre("[::1]:7000"));
  EXPECT_THAT(target_of("/run/redis.sock").addresses, ElementsAre("/run/redis.sock"));
}

TEST(RedisTarget, AUrlNamesUserHostAndDatabase) {
  const RedisOptions options = target_of("redis://caps%40home@cache1:7000/3");
  EXPECT_THAT(options.addresses, ElementsAre("cache1:7000"));
  EXPECT_EQ(options.user, "caps@home");
  EXPECT_EQ(options.password, "of-the-file");
  EXPECT_EQ(options.database, 3);
  EXPECT_THAT(target_of("redis://cache1").addresses, ElementsAre("cache1:6379"));
}

TEST(RedisTarget, APasswordInAUrlIsForTheEnvironment) {
  const std::string url = "redis://:secret@cache1";
  const std::string refused = refusal_of(url);
  EXPECT_THAT(refused, HasSubstr("FCAP_REDIS_PASSWORD"));
  EXPECT_THAT(refused, ::testing::Not(HasSubstr("secret")));
  ::setenv("FCAP_REDIS", url.c_str(), 1);
  EXPECT_EQ(target_of(url).password, "secret");
  ::unsetenv("FCAP_REDIS");
}

TEST(RedisTarget, AUrlNamesSentinels) {
  const RedisOptions options = target_of("redis-sentinel://caps@s1,s2:7000/main/3");
  EXPECT_EQ(options.topology, RedisTopology::kSentinel);
  EXPECT_THAT(options.addresses, ElementsAre("s1:26379", "s2:7000"));
  EXPECT_EQ(options.sentinel_master, "main");
  EXPECT_EQ(options.user, "caps");
  EXPECT_EQ(options.database, 3);
}

TEST(UpdaterConfig, SentinelsAreTakenOver) {
  const File config(R"({"redis": {"topology": "sentinel", "addresses": ["s1:1", "[::1]:2"],
                                  "sentinel_master": "a/b", "user": "u", "database": 3}})");
  const std::string path = config.path();
  cli::CliSettings settings;
  const auto nothing_given = [](const char*) { return false; };
  ASSERT_TRUE(cli::take_updater_config(path, nothing_given, settings).ok());
  const RedisOptions options = redis_target(settings.access, "p", "s").value();
  EXPECT_EQ(options.topology, RedisTopology::kSentinel);
  EXPECT_THAT(options.addresses, ElementsAre("s1:1", "[::1]:2"));
  EXPECT_EQ(options.sentinel_master, "a/b");
  EXPECT_EQ(options.user, "u");
  EXPECT_EQ(options.password, "p");
  EXPECT_EQ(options.sentinel_password, "s");
  EXPECT_EQ(options.database, 3);
}

TEST(UpdaterConfig, AClusterIsTakenOver) {
  const File config(R"({"redis": {"topology": "cluster", "addresses": ["n1:1", "[::1]:2"]}})");
  cli::CliSettings settings;
  const auto nothing_given = [](const char*) { return false; };
  ASSERT_TRUE(cli::take_updater_config(config.path(), nothing_given, settings).ok());
  const RedisOptions options = redis_target(settings.access, "").value();
  EXPECT_EQ(options.topology, RedisTopology::kCluster);
  EXPECT_THAT(options.addresses, ElementsAre("n1:1", "[::1]:2"));
}

TEST(RedisTarget, WhatCannotBeIsRefused) {
  EXPECT_THAT(refusal_of("redis://cache1/one"), HasSubstr("\"one\""));
  EXPECT_THAT(refusal_of("redis:///1"), HasSubstr("no host"));
  EXPECT_THAT(refusal_of("redis://cache1?x=1"), HasSubstr("parameters"));
  EXPECT_THAT(refusal_of("redis-sentinel://s1,s2"), HasSubstr("does not name the master"));
}

TEST(ParseAt, TimesAgo) {
  const Instant now = base::wall_now();
  const auto near = [&](const char* text, std::chrono::milliseconds ago) {
    const auto at = parse_at(text, "--at");
    ASSERT_TRUE(at.ok()) << text;
    EXPECT_GE(at.value(), now - ago) << text;
    EXPECT_LE(at.value(), now - ago + std::chrono::minutes{5}) << text;
  };
  near("now", std::chrono::milliseconds{0});
  near("-1h", std::chrono::hours{1});
  near("-7d", std::chrono::days{7});
  near("yesterday", std::chrono::days{1});
  EXPECT_FALSE(parse_at("-1x", "--at").ok());
  EXPECT_FALSE(parse_at("tomorrow", "--at").ok());
}

TEST(ParseAt, ATimeAgoStandsOnTheCommandLine) {
  const File rules(R"({"rules": []})");
  const File events("");
  const Ran ran =
      run({"check", "u1", "c1", "--at", "-1h", "--rules", rules.path(), "--events", events.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("c1  allowed  no rule applies"));
}

// The settings that a command line gives.
cli::CliSettings settings_of(std::vector<const char*> words) {
  words.insert(words.begin(), "fcap");
  cli::CliSettings settings;
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const auto ended = cli::parse_command_line(static_cast<int>(words.size()), words.data(), settings,
                                             {.in = in, .out = out, .err = err});
  EXPECT_FALSE(ended.has_value()) << err.str();
  return settings;
}

constexpr const char* kConfig = R"({
  // as the updater has it
  "kafka": {"brokers": ["k1:9092", "k2:9092"], "topic": "seen", "properties": {"client.rack": "a"}},
  "redis": {"addresses": ["cache1:7000"], "user": "caps", "database": 2},
  "postgres": {"conninfo": "host=db1 dbname=fcap"},
  "rules": {"snapshot_file": "/var/lib/fcap/rules"},
  "ledger": {"key_prefix": "other", "retention": "10d", "null_user_ids": ["nobody"],
             "allowed_future": "1m"}
})";

TEST(UpdaterConfig, GivesWhatIsNotGivenOtherwise) {
  const File config(kConfig);
  const std::string path = config.path();
  const cli::CliSettings settings = settings_of({"--config", path.c_str(), "audit"});
  EXPECT_EQ(settings.access.redis, "cache1:7000");
  EXPECT_EQ(settings.access.redis_user, "caps");
  EXPECT_EQ(settings.access.redis_database, 2);
  EXPECT_EQ(settings.access.key_prefix, "other");
  EXPECT_EQ(settings.access.retention, "10d");
  EXPECT_THAT(settings.access.null_user_ids, ElementsAre("nobody"));
  EXPECT_EQ(settings.access.postgres, "host=db1 dbname=fcap");
  EXPECT_EQ(settings.access.snapshot_file, "/var/lib/fcap/rules");
  EXPECT_EQ(settings.audit.kafka.brokers, "k1:9092,k2:9092");
  EXPECT_EQ(settings.audit.kafka.topic, "seen");
  EXPECT_EQ(settings.audit.kafka.of_updater.at("client.rack"), "a");
  EXPECT_EQ(settings.audit.allowed_future, "1m");
  EXPECT_EQ(settings.simulate.kafka.brokers, "") << "no topic is read unless it is asked for";
}

TEST(UpdaterConfig, TheCommandLineWins) {
  const File config(kConfig);
  const std::string path = config.path();
  const cli::CliSettings settings =
      settings_of({"--config", path.c_str(), "--key-prefix", "mine", "--redis", "127.0.0.1:1",
                   "audit", "--brokers", "k9", "--topic", "t"});
  EXPECT_EQ(settings.access.key_prefix, "mine");
  EXPECT_EQ(settings.access.redis, "127.0.0.1:1");
  EXPECT_EQ(settings.access.redis_user, "") << "another server has other users";
  EXPECT_EQ(settings.audit.kafka.brokers, "k9");
  EXPECT_EQ(settings.audit.kafka.topic, "t");
}

TEST(UpdaterConfig, ItsMistakesAreNamed) {
  const File config(R"({"redis": {"pasword": "x"}, "kafka": {"broker": []}})");
  const Ran ran = run({"--config", config.path(), "show", "u1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("redis.pasword: unknown name; did you mean redis.password_file?"));
  EXPECT_THAT(ran.err, HasSubstr("did you mean kafka.brokers?"));
}

TEST(UpdaterConfig, TheSampleIsTaken) {
  EXPECT_EQ(settings_of({"--config", FCAP_SOURCE_DIR "/systemd/updater.json.sample", "show", "u1"})
                .access.key_prefix,
            "fcap");
}

TEST(RecordReader, ARefusedConnectionIsToldAtOnce) {
  const auto began = std::chrono::steady_clock::now();
  const Ran ran = run({"--redis", "127.0.0.1:1", "--timeout", "60s", "show", "u1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("refused"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
}

}  // namespace settings_test
}  // namespace fcap::cli_test
