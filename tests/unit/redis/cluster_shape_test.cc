#include "redis/cluster_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/believed_shape.h"
#include "redis/refresh_schedule.h"
#include "redis/resp_parser.h"

namespace fcap::redis {
namespace cluster_shape_test {

using ::testing::HasSubstr;

std::string number(std::int64_t value) {
  return ":" + std::to_string(value) + "\r\n";
}
std::string text(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}
std::string list(std::initializer_list<std::string> elements) {
  std::string wire = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) wire += element;
  return wire;
}
const std::string kNil = "$-1\r\n";

// As Redis 7 describes a node.
std::string node(std::string_view host, int port, std::string_view id) {
  return list({text(host), number(port), text(id), "*0\r\n"});
}
std::string range(int first, int last, const std::string& master) {
  return list({number(first), number(last), master});
}

Result<ClusterShape> read(const std::string& wire) {
  RespParser parser;
  EXPECT_EQ(parser.parse(wire), RespParser::ParseOutcome::kReply) << wire;
  return read_cluster_slots(parser.reply(), "seed.example");
}

std::string mistake_in(const std::string& wire) {
  const auto shape = read(wire);
  return shape.ok() ? "none" : shape.status().text();
}

TEST(ClusterShape, IsReadFromRedis62) {
  // A node there has three elements.
  const auto short_node = [](int port, std::string_view id) {
    return list({text("10.0.0.1"), number(port), text(id)});
  };
  const auto shape = read(list({
      list({number(5461), number(16383), short_node(7002, "b"), short_node(7012, "y")}),
      list({number(0), number(100), short_node(7001, "a"), short_node(7011, "x")}),
      list({number(200), number(5460), short_node(7001, "a"), short_node(7011, "x")}),
  }));
  ASSERT_TRUE(shape.ok()) << shape.status().text();
  const ClusterShape expected{{
      {{"a", node_address("10.0.0.1", 7001)},
       {{"x", node_address("10.0.0.1", 7011)}},
       {{0, 100}, {200, 5460}}},
      {{"b", node_address("10.0.0.1", 7002)},
       {{"y", node_address("10.0.0.1", 7012)}},
       {{5461, 16383}}},
  }};
  EXPECT_EQ(shape.value(), expected);
}

TEST(ClusterShape, WhatTheServerPrefersIsTheHost) {
  const auto host_of = [](const std::string& host, const std::string& metadata) {
    const auto shape = read(list({range(0, 5, list({host, number(6379), text("a"), metadata}))}));
    return shape.ok() ? shape.value().shards.at(0).master.address.text : shape.status().text();
  };
  const std::string hostname = list({text("hostname"), text("one.example")});
  const std::string ip = list({text("ip"), text("10.0.0.7")});
  EXPECT_EQ(host_of(text("10.0.0.1"), hostname), "10.0.0.1:6379");
  EXPECT_EQ(host_of(text("one.example"), ip), "one.example:6379");
  EXPECT_EQ(host_of(text("fe80::1"), "*0\r\n"), "[fe80::1]:6379");
  EXPECT_EQ(host_of(kNil, "*0\r\n"), "seed.example:6379") << "unknown-endpoint";
  EXPECT_EQ(host_of(kNil, list({text("ip"), text("10.0.0.7"), text("hostname"), text("h")})),
            "seed.example:6379");
  EXPECT_EQ(host_of(text(""), "*0\r\n"), "seed.example:6379") << "a node before its first MEET";
  EXPECT_EQ(host_of(text("?"), ip), "10.0.0.7:6379") << "a hostname that nobody has set";
  EXPECT_EQ(host_of(text("?"), "*0\r\n"), "seed.example:6379");
}

TEST(ClusterShape, SlotsOfANodeWhoseAddressIsLostHaveNoOwner) {
  const auto shape = read(list({
      range(0, 9, node("", 0, "lost")),
      list({number(10), number(19), node("10.0.0.1", 7001, "a"), node("", 0, "gone")}),
  }));
  ASSERT_TRUE(shape.ok()) << shape.status().text();
  ASSERT_EQ(shape.value().shards.size(), 1U);
  EXPECT_EQ(shape.value().shards[0].master.id, "a");
  EXPECT_TRUE(shape.value().shards[0].replicas.empty());
}

TEST(ClusterShape, AClusterWithoutSlotsIsEmpty) {
  const auto shape = read("*0\r\n");
  ASSERT_TRUE(shape.ok());
  EXPECT_TRUE(shape.value().shards.empty());
}

TEST(ClusterShape, WhatContradictsItselfIsRefused) {
  const std::string a = node("h", 1, "a");
  const std::string b = node("h", 2, "b");
  EXPECT_THAT(mistake_in(list({range(0, 9, a), range(9, 12, b)})), HasSubstr("slot 9 has two"));
  EXPECT_THAT(mistake_in(list({range(0, 9, a), range(10, 12, node("h", 2, "a"))})),
              HasSubstr("node a has two addresses, h:1 and h:2"));
  EXPECT_THAT(mistake_in(list({range(0, 9, a), range(10, 12, node("h", 1, "b"))})),
              HasSubstr("cluster-announce"));
}

TEST(ClusterShape, WhatNoNodeWouldAnswerIsRefused) {
  const std::string a = node("h", 1, "a");
  for (const std::string& wire : {
           std::string("+OK\r\n"),
           list({number(1)}),
           list({list({number(0), number(1)})}),
           list({range(-1, 5, a)}),
           list({range(6, 5, a)}),
           list({range(0, 16384, a)}),
           list({list({text("0"), number(5), a})}),
           list({range(0, 5, text("h"))}),
           list({range(0, 5, list({text("h"), number(1)}))}),
           list({range(0, 5, list({text("h"), text("1"), text("a")}))}),
           list({range(0, 5, list({number(1), number(1), text("a")}))}),
           list({range(0, 5, list({text("h"), number(1), kNil}))}),
           list({range(0, 5, node("h", 65536, "a"))}),
           list({range(0, 5, node("h", 1, ""))}),
           list({range(0, 5, node("h", 1, std::string(65, 'a')))}),
           list({range(0, 5, node("a b", 1, "a"))}),
           list({range(0, 5, node(std::string(256, 'h'), 1, "a"))}),
           list({list({number(0), number(5), a, number(1)})}),
       }) {
    EXPECT_THAT(mistake_in(wire), HasSubstr("CLUSTER SLOTS: ")) << wire;
  }
}

TEST(ClusterShape, IsBounded) {
  std::string wire = "*1025\r\n";
  for (int i = 0; i < 1025; ++i) wire += range(i, i, node("h", i + 1, "id" + std::to_string(i)));
  EXPECT_THAT(mistake_in(wire), HasSubstr("more than 1024 nodes"));
}

TEST(ClusterShape, AServerWithoutAClusterNamesTheSetting) {
  EXPECT_THAT(mistake_in("-ERR This instance has cluster support disabled\r\n"),
              HasSubstr("topology is cluster, but this is a single server"));
  EXPECT_THAT(mistake_in("-NOAUTH Authentication required.\r\n"), HasSubstr("option password"));
  EXPECT_THAT(mistake_in("-NOPERM this user has no permissions\r\n"), HasSubstr("cluster|slots"));
  EXPECT_THAT(mistake_in("-ERR unknown command 'CLUSTER'\r\n"), HasSubstr("option addresses"));
}

TEST(ClusterInfo, TellsTheEpochAndWhetherTheNodeServes) {
  const auto view_of = [](std::string_view info) {
    ClusterView view;
    const Status read = read_cluster_info({Reply::Kind::kString, 0, info, {}}, view);
    return std::tuple(read.ok(), view.serves, view.epoch);
  };
  EXPECT_EQ(view_of("cluster_enabled:1\r\ncluster_state:ok\r\ncluster_current_epoch:12\r\n"
                    "cluster_my_epoch:3\r\n"),
            std::tuple(true, true, 12U));
  EXPECT_EQ(view_of("cluster_state:fail\r\ncluster_current_epoch:0"), std::tuple(true, false, 0U));
  for (const char* const info : {"", "cluster_state:ok\r\n", "cluster_current_epoch:1\r\n",
                                 "cluster_state:ok\r\ncluster_current_epoch:x\r\n"}) {
    EXPECT_FALSE(std::get<0>(view_of(info))) << info;
  }
}

// --- Who is believed.

ClusterView view(std::uint64_t epoch, std::vector<std::string> masters, bool serves = true) {
  ClusterView view{{}, serves, epoch};
  std::uint16_t slot = 0;
  for (const std::string& id : masters) {
    view.shape.shards.push_back({{id, node_address(id, 6379)}, {}, {{slot, slot}}});
    ++slot;
  }
  return view;
}

std::vector<std::string> masters_of(const BelievedShape& believed) {
  std::vector<std::string> masters;
  if (!believed.shape()) return masters;
  for (const auto& shard : believed.shape()->shards) masters.push_back(shard.master.id);
  return masters;
}

using Masters = std::vector<std::string>;

TEST(BelievedShape, AMasterThatMissedAFailoverIsNotBelieved) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(6, {"a", "b"}), true).ok());
  EXPECT_TRUE(believed.accept(view(7, {"a2", "b"}), false).ok());
  EXPECT_THAT(believed.accept(view(6, {"a", "b"}), false).text(), HasSubstr("epoch is 6, and 7"));
  EXPECT_FALSE(believed.accept(view(6, {"a", "b"}), true).ok()) << "also a seed";
  EXPECT_EQ(masters_of(believed), (Masters{"a2", "b"}));
}

TEST(BelievedShape, WhatChangesWithoutAnEpochIsTaken) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(6, {"a", "b"}), true).ok());
  EXPECT_TRUE(believed.accept(view(6, {"b", "a"}), false).ok());
  EXPECT_EQ(masters_of(believed), (Masters{"b", "a"}));
}

TEST(BelievedShape, ANodeThatIsCutOffIsNotBelievedWhateverItsEpoch) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(7, {"a2", "b"}), true).ok());
  EXPECT_THAT(believed.accept(view(40, {"a", "b"}, false), true).text(), HasSubstr("cut off"));
  EXPECT_EQ(masters_of(believed), (Masters{"a2", "b"}));
}

TEST(BelievedShape, ANodeThatDoesNotServeIsBelievedUntilOneDoes) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(40, {"a", "b"}, false), true).ok());
  EXPECT_EQ(masters_of(believed), (Masters{"a", "b"}));
  EXPECT_TRUE(believed.accept(view(41, {"a", "c"}, false), false).ok());
  EXPECT_TRUE(believed.accept(view(7, {"a2", "b", "c"}), false).ok());
  EXPECT_EQ(masters_of(believed), (Masters{"a2", "b", "c"}));
  EXPECT_FALSE(believed.accept(view(41, {"a", "c"}, false), false).ok());
}

TEST(BelievedShape, OnlyASeedMaySayThatTheClusterIsAnotherOne) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(40, {"a", "b"}), true).ok());
  EXPECT_THAT(believed.accept(view(50, {"x", "y"}), false).text(), HasSubstr("another cluster"));
  EXPECT_TRUE(believed.accept(view(3, {"x", "y"}), true).ok());
  EXPECT_EQ(masters_of(believed), (Masters{"x", "y"}));
  EXPECT_EQ(believed.epoch(), 3U);
}

TEST(BelievedShape, ANodeWithoutSlotsTellsNothing) {
  BelievedShape believed;
  EXPECT_THAT(believed.accept(view(0, {}, false), true).text(), HasSubstr("been created"));
  EXPECT_EQ(believed.shape(), nullptr);
}

TEST(BelievedShape, StaysTheSameObjectWhileNothingChanges) {
  BelievedShape believed;
  EXPECT_TRUE(believed.accept(view(6, {"a", "b"}), true).ok());
  const auto shape = believed.shape();
  EXPECT_TRUE(believed.accept(view(7, {"a", "b"}), false).ok());
  EXPECT_EQ(believed.shape(), shape);
  EXPECT_EQ(believed.epoch(), 7U);
}

// --- When it is asked.

TEST(RefreshSchedule, IsAtOnceThenOncePerMinuteAndNeverTwiceWithinASecond) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  RefreshSchedule schedule;
  RefreshSchedule::TimePoint now{std::chrono::hours{1}};
  EXPECT_LE(schedule.due(false), now);
  EXPECT_LE(schedule.due(true), now);
  for (const double random : {0.0, 0.5, 0.999}) {
    schedule.ended(now, true, random);
    EXPECT_GE(schedule.due(true), now + seconds{1});
    EXPECT_LE(schedule.due(true), now + milliseconds{1500});
    EXPECT_GE(schedule.due(false), now + seconds{54});
    EXPECT_LE(schedule.due(false), now + seconds{66});
    now += seconds{60};
  }
}

TEST(RefreshSchedule, AnotherNodeIsAskedASecondLaterWhetherThatIsWantedOrNot) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  RefreshSchedule schedule;
  const RefreshSchedule::TimePoint now{std::chrono::hours{1}};
  for (const double random : {0.0, 0.5, 0.999}) {
    for (int turn = 0; turn < 10; ++turn) schedule.goes_on(now, random);
    for (const bool wanted : {false, true}) {
      EXPECT_GE(schedule.due(wanted), now + seconds{1});
      EXPECT_LE(schedule.due(wanted), now + milliseconds{1500});
    }
  }
}

TEST(RefreshSchedule, AFailureIsRepeatedSoonAndThenLessAndLessOften) {
  using std::chrono::seconds;
  RefreshSchedule schedule;
  const RefreshSchedule::TimePoint now{std::chrono::hours{1}};
  schedule.ended(now, false, 0.0);
  EXPECT_EQ(schedule.due(false), now + seconds{1});
  for (int i = 0; i < 10; ++i) schedule.ended(now, false, 0.999);
  EXPECT_GE(schedule.due(false), now + seconds{30});
  EXPECT_LE(schedule.due(false), now + seconds{60});
  EXPECT_LE(schedule.due(true), now + seconds{2}) << "when it is wanted";
}

}  // namespace cluster_shape_test
}  // namespace fcap::redis
