// From a reservation to its confirmed impression: real servers, and the daemon between them.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "support/redis_test.h"
#include "support/reserving.h"
#include "support/updater_pipeline.h"
#include "test_paths.h"

namespace fcap {
namespace reserve_confirmed_path_test {

using namespace std::chrono_literals;
using testing::Process;
using testing::wait_until;

class ReserveConfirmed : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    testing::make_reserver([this](const auto& words) { return redis_->command(words); });
    daemon_ = start_daemon();
    RedisOptions reach;
    reach.addresses = {redis_->address()};
    checker_ = testing::reserving_checker(testing::reserver_options(reach), 2);
    ASSERT_NE(checker_, nullptr) << "the daemon's configuration does not allow reservations\n"
                                 << daemon_->errors();
  }

  std::unique_ptr<Process> start_daemon() {
    config_ = (files_.path() / "updater.json").string();
    std::ofstream(config_) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "dead_letter_topic": "{}.dead",
             "group_id": "{}"}},
            "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}}}})",
        kafka->brokers(), topic_, topic_, topic_, redis_->address());
    return std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config_});
  }
  void publish(const std::string& id, Instant time) {
    const testing::MadeEvent event{
        .user_id = "u", .campaign_id = "c", .event_id = id, .time = time};
    producer_->send(topic_, event.user_id, event.json());
    producer_->flush();
  }
  ledger::Ledger record() {
    ledger::Ledger ledger;
    const auto store = testing::connected_store(*redis_);
    EXPECT_EQ(ledger.decode(testing::StoreCalls(*store).get("fcap:{u}").record),
              ledger::DecodeCode::kOk);
    return ledger;
  }
  HardResult reserve(std::string_view id) {
    return checker_->hard({HardCall::kReserve, {"u", {"c"}, id}});
  }

  testing::TemporaryDirectory files_;
  std::string config_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<Checker> checker_;
};

TEST_F(ReserveConfirmed, TheImpressionFromKafkaIsNotCountedBesideItsReservation) {
  const HardResult first = reserve("a");
  ASSERT_TRUE(first.allowed) << describe(first.reason);
  publish("a", first.time);
  ASSERT_TRUE(wait_until([&] { return record().size() == 1; }, kPatience)) << daemon_->errors();
  EXPECT_TRUE(reserve("b").allowed);
  EXPECT_EQ(reserve("c").reason, Reason::kCapped);
  EXPECT_EQ(reserve("a").reason, Reason::kRepeated);
  // A second delivery changes nothing.
  publish("a", first.time);
  publish("b", reserve("b").time);
  ASSERT_TRUE(wait_until([&] { return record().size() == 2; }, kPatience)) << daemon_->errors();
  EXPECT_EQ(reserve("c").reason, Reason::kCapped);
}

TEST_F(ReserveConfirmed, CompactionKeepsWhatIsReservedAndLosesNoEvent) {
  ASSERT_TRUE(reserve("a").allowed);
  publish("x", std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
  ASSERT_TRUE(wait_until([&] { return record().size() == 1; }, kPatience)) << daemon_->errors();
  const testing::Finished swept = testing::run({FCAP_UPDATER_BINARY, "sweep", "--config", config_});
  ASSERT_EQ(swept.exit_code, 0) << swept.errors;
  EXPECT_EQ(record().size(), 1U);
  EXPECT_EQ(record().reservations().size(), 1U);
  EXPECT_EQ(reserve("a").reason, Reason::kRepeated);
  EXPECT_EQ(reserve("c").reason, Reason::kCapped);
}

}  // namespace reserve_confirmed_path_test
}  // namespace fcap
