// The write path over a master that Sentinels replace under load.
#include <gtest/gtest.h>

#include "support/redis_sentinels.h"
#include "support/updater_pipeline.h"

namespace fcap {
namespace sentinel_kafka_test {

using testing::RedisSentinels;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterBehindSentinels : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    servers_ = std::make_unique<RedisSentinels>();
    redis_address_ = servers_->url();
  }

  // What is written from now on is in the master alone.
  void hold_replicas_back(int master) {
    for (int node = 0; node < RedisSentinels::kServers; ++node) {
      if (node != master) servers_->freeze(node);
    }
    // Otherwise they would read what is sent to them until the master dies.
    servers_->command(master, {"CLIENT", "KILL", "TYPE", "replica"});
  }

  // Kills the master while events are written; the one that took over.
  int fail_over(int master) {
    produce(5'000);
    servers_->kill_master(master);
    for (int node = 0; node < RedisSentinels::kServers; ++node) {
      if (node != master) servers_->thaw(node);
    }
    produce(5'000);
    producer_->flush();
    return servers_->wait_for_other_master(master);
  }

  // Whichever it is by now: on a busy machine the Sentinels replace masters of their own accord.
  void expect_the_master_was_written_to() {
    EXPECT_TRUE(wait_until([&] {
      const int master = servers_->master();
      return master >= 0 && servers_->command(master, {"ROLE"}).starts_with("master") &&
             servers_->command(master, {"DBSIZE"}) != "0";
    }));
  }

  std::unique_ptr<RedisSentinels> servers_;
};

TEST_F(UpdaterBehindSentinels, NothingIsLostWhenMastersAreKilledTwiceInARow) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  servers_->kill(3);  // two Sentinels are enough to agree, and the updater asks another
  for (int round = 0; round < 2; ++round) {
    const int former = servers_->master();
    ASSERT_GE(former, 0);
    ASSERT_GE(fail_over(former), 0) << updater->log();
    expect_all_counted(*updater);
    expect_the_master_was_written_to();
    servers_->start(former);
    ASSERT_TRUE(servers_->wait_for_replicas(2));
  }
  produce(1'000);
  expect_all_counted(*updater);
  expect_ready(*updater);
}

TEST_F(UpdaterBehindSentinels, AReplicaThatWasHeldBackIsFilledAgain) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  const int former = servers_->master();
  ASSERT_GE(former, 0);
  hold_replicas_back(former);
  produce(20'000);
  expect_all_counted(*updater);  // acknowledged, and in the master alone
  ASSERT_GE(fail_over(former), 0) << updater->log();
  expect_all_counted(*updater);
  EXPECT_GE(updater->metrics().rewinds.value(), 1U) << updater->log();
  EXPECT_GE(updater->metrics().rewound_messages.value(), 20'000U) << updater->log();
  expect_the_master_was_written_to();
}

TEST_F(UpdaterBehindSentinels, WhatADemotedMasterThatStillAnswersWasToldIsWrittenAgain) {
  for (int node = 0; node < RedisSentinels::kServers; ++node) {
    servers_->command(node, {"ACL", "SETUSER", "app", "on", ">app", "~*", "+@all"});
  }
  redis_user_ = "app";
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  // The Sentinels and the replicas are locked out of the master, and the updater is not.
  const int former = servers_->master();
  ASSERT_GE(former, 0);
  const std::vector<std::string> app = {"--user", "app", "--pass", "app", "--no-auth-warning"};
  servers_->notice_soon();
  servers_->command(former, {"ACL", "SETUSER", "default", "off"}, app);
  servers_->command(former, {"CLIENT", "KILL", "USER", "default"}, app);
  servers_->command(former, {"CLIENT", "KILL", "TYPE", "replica"}, app);
  produce(20'000);
  producer_->flush();
  ASSERT_GE(servers_->wait_for_other_master(former), 0) << updater->log();
  EXPECT_TRUE(servers_->command(former, {"ROLE"}, app).starts_with("master"));
  produce(5'000);
  expect_all_counted(*updater);
  // Those answers may have been the former master's: it is left within seconds.
  EXPECT_TRUE(wait_until([&] {
    return updater->log().find("the Sentinels name another master") != std::string::npos;
  })) << updater->log();
  expect_all_counted(*updater);
  expect_the_master_was_written_to();
}

}  // namespace sentinel_kafka_test
}  // namespace fcap
