#include "updater/pipeline/node_look.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace node_look_test {

constexpr const char* kInfo =
    "# Replication\r\nrole:master\r\nconnected_slaves:1\r\nmaster_replid:aaaa\r\n"
    "master_replid2:0000000000000000000000000000000000000000\r\n";

constexpr const char* kNodes =
    "n1 127.0.0.1:7001@17001,name myself,master - 0 0 1 connected 0-5460 7000 [5->-n2] "
    "[9000-<-n2]\n"
    "n2 127.0.0.1:7002@17002 master - 0 1 2 connected 5461-6999\n"
    "n3 127.0.0.1:7003@17003 slave n1 0 1 1 connected\n"
    "n4 127.0.0.1:7004@17004 master - 0 1 0 connected\n"
    "n5 127.0.0.1:7005@17005 master,fail - 0 1 0 disconnected\n";

TEST(NodeLook, SaysWhatTheNodeOwnsAndWhatIsOnTheMove) {
  const auto look = read_node_look(kNodes, kInfo);
  ASSERT_TRUE(look);
  EXPECT_TRUE(look->is_master);
  EXPECT_EQ(look->self.node, "n1");
  EXPECT_EQ(look->self.replication, "aaaa");
  EXPECT_EQ(look->self.former, "");
  EXPECT_EQ(look->self.owned.text(), "0-5460,7000");
  EXPECT_EQ(look->self.migrating.text(), "5");
  EXPECT_EQ(look->self.importing.text(), "9000");
}

TEST(NodeLook, NamesTheMastersThatHaveNotFailed) {
  const auto look = read_node_look(kNodes, kInfo);
  ASSERT_TRUE(look);
  ASSERT_EQ(look->masters.size(), 3U);
  EXPECT_EQ(look->masters[1].address, "127.0.0.1:7002");
  EXPECT_TRUE(look->masters[1].has_slots);
  EXPECT_EQ(look->masters[2].id, "n4");
  EXPECT_FALSE(look->masters[2].has_slots);
}

TEST(NodeLook, NamesTheHostsOfMastersThatAnnounceThem) {
  const auto look = read_node_look(
      "n1 10.0.0.1:7001@17001,one.example myself,master - 0 0 1 connected 0-16383\n"
      "n2 ::1:7002@17002,two.example,shard-id=s2 master - 0 1 2 connected\n"
      "n3 10.0.0.3:7003@17003,,shard-id=s3 master - 0 1 2 connected\n"
      "n4 10.0.0.4:7004@17004 master - 0 1 2 connected\n"
      "n5 10.0.0.5:7005 master - 0 1 2 connected\n",
      kInfo);
  ASSERT_TRUE(look);
  ASSERT_EQ(look->masters.size(), 5U);
  EXPECT_EQ(look->masters[0].address, "10.0.0.1:7001");
  EXPECT_EQ(look->masters[0].named_address, "one.example:7001");
  EXPECT_EQ(look->masters[1].address, "::1:7002");
  EXPECT_EQ(look->masters[1].named_address, "two.example:7002");
  for (const std::size_t without : {2U, 3U, 4U}) {
    EXPECT_EQ(look->masters[without].named_address, "");
  }
}

TEST(NodeLook, APromotedReplicaKnowsTheHistoryThatItContinues) {
  const auto look = read_node_look("n3 127.0.0.1:7003@17003 myself,master - 0 0 3 connected 0-1\n",
                                   "role:master\r\nmaster_replid:bbbb\r\nmaster_replid2:aaaa\r\n");
  ASSERT_TRUE(look);
  EXPECT_EQ(look->self.former, "aaaa");
}

TEST(NodeLook, AReplicaIsNoMaster) {
  const auto look = read_node_look("n3 127.0.0.1:7003@17003 myself,slave n1 0 0 3 connected\n",
                                   "role:slave\r\nmaster_replid:aaaa\r\n");
  ASSERT_TRUE(look);
  EXPECT_FALSE(look->is_master);
}

TEST(NodeLook, WhatIsNoSuchAnswerIsRefused) {
  EXPECT_FALSE(read_node_look("", kInfo));
  EXPECT_FALSE(read_node_look(kNodes, "role:master\r\n"));
  EXPECT_FALSE(read_node_look("n1 127.0.0.1:1@2 myself,master - 0 0 1 connected 99999\n", kInfo));
  EXPECT_FALSE(read_node_look("n1 127.0.0.1:1@2 myself,master - 0 0 1 connected [5]\n", kInfo));
}

}  // namespace node_look_test
}  // namespace fcap::updater
