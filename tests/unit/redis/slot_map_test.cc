#include "redis/slot_map.h"

#include <thread>

#include <gtest/gtest.h>

#include "redis/redirect.h"

namespace fcap::redis {
namespace slot_map_test {

ClusterShape::Shard shard(std::uint16_t port, std::vector<SlotRange> slots) {
  return {{"id" + std::to_string(port), node_address("10.0.0.1", port)}, {}, std::move(slots)};
}

TEST(NodeTable, AnAddressKeepsItsIndex) {
  NodeTable nodes;
  const NodeIndex first = nodes.index_of(node_address("10.0.0.1", 1)).value();
  const NodeIndex second = nodes.index_of(node_address("::1", 1)).value();
  EXPECT_NE(first, second);
  EXPECT_EQ(nodes.index_of(node_address("10.0.0.1", 1)), first);
  EXPECT_EQ(nodes.address(first).text, "10.0.0.1:1");
  EXPECT_EQ(nodes.address(second).text, "[::1]:1");
  EXPECT_EQ(nodes.address(second).host, "::1");
  EXPECT_EQ(nodes.size(), 2U);
}

TEST(NodeTable, IsBounded) {
  NodeTable nodes;
  for (std::uint16_t port = 1; port <= NodeTable::kNodesMax; ++port) {
    ASSERT_TRUE(nodes.index_of(node_address("h", port)).has_value());
  }
  EXPECT_EQ(nodes.index_of(node_address("h", 9999)), std::nullopt);
  EXPECT_EQ(nodes.index_of(node_address("h", 1)), 0);
  SlotMap map;
  const auto refused = map.replace({{shard(1, {{0, 5}})}}, nodes);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(map.node_of(0), SlotMap::kNone);
}

TEST(SlotMap, KnowsNoOwnerAtFirst) {
  const SlotMap map;
  EXPECT_EQ(map.node_of(0), SlotMap::kNone);
  EXPECT_EQ(map.node_of(kSlotCount - 1), SlotMap::kNone);
}

TEST(SlotMap, TakesAWholeShapeAndSaysWhatChanged) {
  NodeTable nodes;
  SlotMap map;
  const ClusterShape before{{shard(1, {{0, 9}, {100, 16383}}), shard(2, {{10, 98}})}};
  EXPECT_EQ(map.replace(before, nodes).value(), kSlotCount - 1);
  EXPECT_EQ(nodes.address(map.node_of(9)).port, 1);
  EXPECT_EQ(nodes.address(map.node_of(10)).port, 2);
  EXPECT_EQ(nodes.address(map.node_of(98)).port, 2);
  EXPECT_EQ(map.node_of(99), SlotMap::kNone) << "which nobody serves";
  EXPECT_EQ(nodes.address(map.node_of(16383)).port, 1);
  EXPECT_EQ(map.replace(before, nodes).value(), 0U);

  const ClusterShape after{{shard(2, {{0, 98}})}};
  EXPECT_EQ(map.replace(after, nodes).value(), 10U);
  EXPECT_EQ(nodes.address(map.node_of(0)).port, 2);
  EXPECT_EQ(nodes.address(map.node_of(100)).port, 1) << "which kept its node";
}

TEST(SlotMap, OneMovedCorrectsOneSlot) {
  NodeTable nodes;
  SlotMap map;
  EXPECT_TRUE(map.replace({{shard(1, {{0, 16383}})}}, nodes).ok());
  map.correct(7, nodes.index_of(node_address("10.0.0.2", 1)).value());
  EXPECT_EQ(nodes.address(map.node_of(6)).host, "10.0.0.1");
  EXPECT_EQ(nodes.address(map.node_of(7)).host, "10.0.0.2");
  EXPECT_EQ(nodes.address(map.node_of(8)).host, "10.0.0.1");
}

TEST(SlotMap, ReadersSeeOneOwnerOrTheOtherWhileItChanges) {
  NodeTable nodes;
  SlotMap map;
  EXPECT_TRUE(map.replace({{shard(1, {{0, 16383}})}}, nodes).ok());
  std::thread writer([&] {
    for (std::uint16_t port = 2; port < 40; ++port) {
      EXPECT_TRUE(map.replace({{shard(port, {{0, 16383}})}}, nodes).ok());
      map.correct(3, nodes.index_of(node_address("10.0.0.1", port)).value());
    }
  });
  std::uint16_t latest = 0;
  while (latest != 39) {
    const std::uint16_t port = nodes.address(map.node_of(3)).port;
    EXPECT_GE(port, latest);
    latest = port;
  }
  writer.join();
}

TEST(Redirect, TellsKindSlotAndAddress) {
  const auto moved = read_redirect("MOVED 3999 127.0.0.1:6381");
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->kind, Redirect::Kind::kMoved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->host, "127.0.0.1");
  EXPECT_EQ(moved->port, 6381);
  const auto ask = read_redirect("ASK 16383 cache-2.example:6382");
  ASSERT_TRUE(ask.has_value());
  EXPECT_EQ(ask->kind, Redirect::Kind::kAsk);
  EXPECT_EQ(ask->slot, 16383);
  EXPECT_EQ(ask->host, "cache-2.example");
}

TEST(Redirect, TheLastColonEndsAnIpv6Host) {
  for (const char* const text : {"MOVED 3999 ::1:6381", "MOVED 3999 [::1]:6381"}) {
    const auto moved = read_redirect(text);
    ASSERT_TRUE(moved.has_value()) << text;
    EXPECT_EQ(moved->host, "::1");
    EXPECT_EQ(moved->port, 6381);
    EXPECT_EQ(address_of(*moved, {}).text, "[::1]:6381");
  }
}

TEST(Redirect, AHostThatIsNotToldIsThatOfTheNodeThatAnswered) {
  const Address answered = node_address("proxy.example", 7000);
  for (const char* const text : {"MOVED 3999 :6381", "ASK 3999 ?:6381"}) {
    const auto redirect = read_redirect(text);
    ASSERT_TRUE(redirect.has_value()) << text;
    EXPECT_EQ(address_of(*redirect, answered).text, "proxy.example:6381");
  }
}

TEST(Redirect, WhatIsNoneIsNotTakenForOne) {
  for (const char* const text : {"",
                                 "MOVED",
                                 "MOVED ",
                                 "MOVED 3999",
                                 "MOVED 3999 ",
                                 "MOVED 3999 host",
                                 "MOVED 3999 host:",
                                 "MOVED 3999 host:0",
                                 "MOVED 3999 host:65536",
                                 "MOVED 3999 host:1x",
                                 "MOVED 16384 host:1",
                                 "MOVED -1 host:1",
                                 "MOVED  3999 host:1",
                                 "MOVED 3999 a b:1",
                                 "MOVED a:1 2",
                                 "MOVEDX 1 h:1",
                                 "moved 3999 host:1",
                                 "ASKING 3999 host:1",
                                 "ERR MOVED 1 h:1",
                                 "TRYAGAIN Multiple keys"}) {
    EXPECT_FALSE(read_redirect(text).has_value()) << text;
  }
}

}  // namespace slot_map_test
}  // namespace fcap::redis
