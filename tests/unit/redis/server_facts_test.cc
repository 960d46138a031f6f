#include "redis/server_facts.h"

#include <array>

#include <gtest/gtest.h>

#include "redis/config_record.h"
#include "redis/config_watch.h"
#include "redis/log_thinner.h"

namespace fcap::redis {
namespace server_facts_test {

Reply string(std::string_view text) {
  return {Reply::Kind::kString, 0, text, {}};
}
Reply integer(std::int64_t value) {
  return {Reply::Kind::kInteger, value, {}, {}};
}
Reply array(std::span<const Reply> elements) {
  return {Reply::Kind::kArray, 0, {}, elements};
}
const Reply kRefused{Reply::Kind::kError, 0, "NOPERM this user has no permissions", {}};

ServerFacts after_role(std::span<const Reply> elements) {
  ServerFacts facts;
  facts.take_role(array(elements));
  return facts;
}

TEST(ServerFacts, AMasterIsFit) {
  const Reply role[] = {string("master"), integer(0), array({})};
  const ServerFacts facts = after_role(role);
  EXPECT_EQ(facts.role, ServerRole::kMaster);
  EXPECT_EQ(facts.unfit(), "");
}

TEST(ServerFacts, AReplicaTellsItsMasterAndWhetherItsLinkIsUp) {
  const Reply up[] = {string("slave"), string("10.0.0.5"), integer(6379), string("connected"),
                      integer(12)};
  EXPECT_EQ(after_role(up).role, ServerRole::kReplica);
  EXPECT_EQ(after_role(up).role_text, "replica of 10.0.0.5:6379, whose link is up");
  EXPECT_TRUE(after_role(up).replica_link_up);
  const Reply down[] = {string("slave"), string("10.0.0.5"), integer(6379), string("connect"),
                        integer(-1)};
  EXPECT_EQ(after_role(down).role_text, "replica of 10.0.0.5:6379, whose link is down (connect)");
  EXPECT_FALSE(after_role(down).replica_link_up);
}

TEST(ServerFacts, ASentinelIsUnfitAndNamesTheOption) {
  const Reply role[] = {string("sentinel"), array({})};
  EXPECT_NE(after_role(role).unfit().find("addresses"), std::string::npos);
}

TEST(ServerFacts, AClusterIsFitOnlyAsOneNodeWithAllSlots) {
  const auto unfit = [](std::string_view info) {
    ServerFacts facts;
    facts.take_cluster(string(info));
    return facts.unfit();
  };
  EXPECT_EQ(unfit("cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_size:1\r\n"), "");
  EXPECT_NE(unfit("cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_size:3\r\n"), "");
  EXPECT_NE(unfit("cluster_state:fail\r\ncluster_slots_assigned:0\r\ncluster_size:0\r\n"), "");
}

TEST(ServerFacts, AServerWithoutClusterModeIsNoNodeOfACluster) {
  ServerFacts facts;
  facts.take_cluster(string("cluster_state:ok\r\ncluster_slots_assigned:0\r\ncluster_size:3\r\n"));
  EXPECT_EQ(facts.unfit_for_cluster(), "");
  facts.take_cluster(kRefused);
  EXPECT_EQ(facts.unfit_for_cluster(), "");
  facts.take_cluster(
      {Reply::Kind::kError, 0, "ERR This instance has cluster support disabled", {}});
  EXPECT_NE(facts.unfit_for_cluster().find("topology"), std::string::npos);
}

TEST(ServerFacts, WhatTheServerRefusesToTellStaysUnknownAndFit) {
  ServerFacts facts;
  facts.take_role(kRefused);
  facts.take_cluster(kRefused);
  facts.take_time(kRefused, {});
  EXPECT_EQ(facts.role, ServerRole::kUnknown);
  EXPECT_FALSE(facts.clock_difference.has_value());
  EXPECT_NE(facts.clock_text.find("NOPERM"), std::string::npos);
  EXPECT_EQ(facts.unfit(), "");
}

TEST(ServerFacts, ARedisBelow7IsUnfitForWhateverTopology) {
  const auto after_hello = [](const Reply& reply) {
    ServerFacts facts;
    facts.take_hello(reply);
    return facts;
  };
  const auto told = [&](std::string_view server, std::string_view version) {
    const Reply fields[] = {string("server"), string(server),  string("version"),
                            string(version),  string("proto"), integer(2)};
    return after_hello(array(fields));
  };
  for (const ServerFacts& facts :
       {told("redis", "6.2.14"), told("redis", "5.0"),
        after_hello({Reply::Kind::kError, 0, "ERR unknown command `HELLO`", {}})}) {
    EXPECT_NE(facts.unfit().find("fcap needs 7.0 or later"), std::string::npos);
    EXPECT_EQ(facts.unfit(), facts.unfit_for_cluster());
  }
  EXPECT_NE(told("redis", "6.2.14").unfit().find("this is Redis 6.2.14"), std::string::npos);
  for (const ServerFacts& facts :
       {told("redis", "7.0.0"), told("redis", "8.2.3"), told("redis", "255.255.255"),
        told("redis", "unstable"), told("dragonfly", "1.2"), after_hello(array({})),
        after_hello(kRefused),
        after_hello({Reply::Kind::kError, 0, "ERR unknown command 'HELLO'", {}})}) {
    EXPECT_EQ(facts.unfit(), "");
  }
}

TEST(ServerFacts, TheClocksAreCompared) {
  const Reply time[] = {string("1700000002"), string("500000")};
  ServerFacts facts;
  facts.take_time(array(time), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(facts.clock_difference, std::chrono::milliseconds{2500});
  EXPECT_EQ(facts.clock_text, "");
}

TEST(ServerFacts, AClockThatCannotBeIsNotCompared) {
  for (const char* seconds : {"-1", "0", "x", "253402300800", "3883139815726120959"}) {
    const Reply time[] = {string(seconds), string("9223372036854775807")};
    ServerFacts facts;
    facts.take_time(array(time), instant_from_ms(1));
    EXPECT_FALSE(facts.clock_difference.has_value()) << seconds;
    EXPECT_NE(facts.clock_text, "") << seconds;
  }
}

TEST(ConfigWatch, TellsMissingDifferentUnreadableAndAgreeing) {
  ConfigWatch watch;
  EXPECT_EQ(watch.key(), "");
  watch.expect({.key_prefix = "fcap", .retention = std::chrono::days{32}, .null_user_ids = {"0"}});
  EXPECT_EQ(watch.key(), "fcap:!config");
  EXPECT_EQ(watch.state(), ConfigState::kUnknown);

  EXPECT_TRUE(watch.compare_with({Reply::Kind::kNil, 0, {}, {}}, 5));
  EXPECT_EQ(watch.state(), ConfigState::kMissing);
  EXPECT_NE(watch.text().find("key_prefix \"fcap\" in database 5"), std::string::npos);

  EXPECT_TRUE(watch.compare_with(kRefused, 5));
  EXPECT_EQ(watch.state(), ConfigState::kUnknown);
  EXPECT_NE(watch.text().find("NOPERM"), std::string::npos);

  EXPECT_TRUE(watch.compare_with(string("?"), 5));
  EXPECT_EQ(watch.state(), ConfigState::kUnknown);

  ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = std::chrono::days{31};
  record.null_user_ids = {"0"};
  EXPECT_TRUE(watch.compare_with(string(encode_config(record)), 5));
  EXPECT_EQ(watch.state(), ConfigState::kDiffers);
  EXPECT_NE(watch.text().find("retention: 31 d"), std::string::npos);

  record.retention = std::chrono::days{32};
  EXPECT_TRUE(watch.compare_with(string(encode_config(record)), 5));
  EXPECT_EQ(watch.state(), ConfigState::kAgrees);
  EXPECT_EQ(watch.text(), "");
  EXPECT_FALSE(watch.compare_with(string(encode_config(record)), 5));
}

const std::vector<MissingEvents> kAny{MissingEvents(kAnyEvent)};

TEST(ConfigWatch, TellsWhatOpenGapsLack) {
  ConfigWatch watch;
  watch.expect({.key_prefix = "fcap", .retention = {}, .null_user_ids = {}});
  EXPECT_EQ(watch.missing(), kAny) << "nothing was read yet";
  ConfigRecord record;
  record.key_prefix = "of others";
  const Instant before = instant_from_ms(1'700'000'000'000);
  const std::vector<MissingEvents> missing{MissingEvents(before, {7, 9})};
  record.missing_before["g:t"]["0"] = missing.front();
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_EQ(watch.missing(), missing) << "however the updater is set otherwise";
  (void)watch.compare_with(kRefused, 0);
  EXPECT_EQ(watch.missing(), kAny);
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_EQ(watch.missing(), missing);
  std::string malformed = encode_config(record);
  malformed.replace(malformed.find("7-9"), 3, "9-7");
  (void)watch.compare_with(string(malformed), 0);
  EXPECT_EQ(watch.missing(), kAny) << "what cannot be read says nothing";
  record.missing_before.clear();
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_TRUE(watch.missing().empty());
}

TEST(ConfigWatch, WhatWasReadFromAServerThatIsAwayIsForgotten) {
  ConfigWatch watch;
  watch.forget();
  EXPECT_TRUE(watch.missing().empty()) << "nothing is expected";
  watch.expect({.key_prefix = "fcap", .retention = {}, .null_user_ids = {}});
  EXPECT_FALSE(watch.has_reply());
  ConfigRecord record;
  record.key_prefix = "fcap";
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_TRUE(watch.has_reply());
  EXPECT_TRUE(watch.missing().empty());
  watch.forget();
  EXPECT_FALSE(watch.has_reply());
  EXPECT_EQ(watch.missing(), kAny);
  EXPECT_EQ(watch.state(), ConfigState::kUnknown);
  EXPECT_NE(watch.text(), "");
  EXPECT_EQ(watch.terms().reservation_life_max.count(), 0);
  EXPECT_TRUE(watch.compare_with(string(encode_config(record)), 0)) << "the same record says it";
  EXPECT_TRUE(watch.missing().empty());
}

TEST(ConfigWatch, WithAFormatThatIsNotKnownAnyEventMayBeMissingAndNothingIsReserved) {
  ConfigWatch watch;
  watch.expect({.key_prefix = "fcap", .retention = {}, .null_user_ids = {}});
  ConfigRecord record;
  record.key_prefix = "fcap";
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_GT(watch.terms().reservation_life_max.count(), 0);
  (void)watch.compare_with(string(R"({"write_format":4})"), 0);
  EXPECT_EQ(watch.state(), ConfigState::kUnknown);
  EXPECT_EQ(watch.missing(), kAny);
  EXPECT_EQ(watch.terms().reservation_life_max.count(), 0);
  EXPECT_NE(watch.text().find("write_format 4"), std::string::npos) << watch.text();
}

TEST(ConfigWatch, WithoutARecordAnyEventMayBeMissing) {
  ConfigWatch watch;
  watch.expect({.key_prefix = "fcap", .retention = {}, .null_user_ids = {}});
  (void)watch.compare_with({Reply::Kind::kNil, 0, {}, {}}, 0);
  EXPECT_EQ(watch.missing(), kAny) << "also where there never was one";
  EXPECT_EQ(watch.terms().reservation_life_max.count(), 0);
  ConfigRecord record;
  record.key_prefix = "fcap";
  (void)watch.compare_with(string(encode_config(record)), 0);
  EXPECT_TRUE(watch.missing().empty());
  EXPECT_GT(watch.terms().reservation_life_max.count(), 0);
  (void)watch.compare_with({Reply::Kind::kNil, 0, {}, {}}, 0);
  EXPECT_EQ(watch.missing(), kAny) << "whoever has emptied Redis took it along";
  EXPECT_EQ(watch.terms().reservation_life_max.count(), 0);
}

TEST(LogThinner, TellsTheFirstSecondFourthAndSoOn) {
  LogThinner occurrences;
  const LogThinner::TimePoint now{std::chrono::hours{1}};
  std::vector<std::uint64_t> told;
  for (int i = 0; i < 20; ++i) {
    // Slots and ports differ.
    const auto count = occurrences.note("MOVED " + std::to_string(i) + " 10.0.0.1:7000", now);
    if (count != 0) told.push_back(count);
  }
  EXPECT_EQ(told, (std::vector<std::uint64_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(occurrences.note("another", now), 1U);
}

TEST(LogThinner, WhatWasQuietForLongBeginsAgain) {
  LogThinner occurrences;
  const LogThinner::TimePoint now{std::chrono::hours{1}};
  for (int i = 0; i < 3; ++i) static_cast<void>(occurrences.note("x", now));
  EXPECT_EQ(occurrences.note("x", now + std::chrono::minutes{11}), 1U);
}

}  // namespace server_facts_test
}  // namespace fcap::redis
