// The daemon itself, on real servers, while it and they are killed: in the end every event is in
// its user's ledger, once.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "ledger/ledger.h"
#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/store_calls.h"
#include "test_paths.h"
#include "tests/support/seed.h"

namespace fcap {
namespace faults_path_test {

using std::chrono::milliseconds;
using testing::EventMaker;
using testing::ExpectedLedgers;
using testing::KafkaProducer;
using testing::MadeEvent;
using testing::PostgresServer;
using testing::Process;
using testing::wait_until;

constexpr milliseconds kPatience{120'000};
constexpr std::chrono::days kRetention{32};  // the default
constexpr std::uint64_t kSeed = 20'240'609;  // unless FCAP_TEST_SEED says another

class UpdaterFaults : public testing::KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    RedisOptions options;
    options.addresses = {redis_->address()};
    auto made = make_redis_store(options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
    write_config("");
  }

  // `more`: further sections, each behind a comma.
  void write_config(const std::string& more) {
    config_ = (files_.path() / "updater.json").string();
    std::ofstream(config_) << fmt::format(
        R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "dead_letter_topic": "{}.dead",
             "group_id": "{}", "group_instance_id": "one",
             "properties": {{"session.timeout.ms": "10000"}}}},
            "redis": {{"addresses": ["{}"]}}, "http": {{"enabled": false}}{}}})",
        kafka->brokers(), topic_, topic_, topic_, redis_->address(), more);
  }

  std::unique_ptr<Process> start_updater() {
    return std::make_unique<Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, "run", "--config", config_});
  }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
    }
  }

  // Produces, and spreads it over about `time`.
  void produce_over(std::size_t count, milliseconds time) {
    constexpr std::size_t kSlices = 50;
    for (std::size_t i = 0; i < kSlices; ++i) {
      produce(count / kSlices);
      std::this_thread::sleep_for(time / kSlices);
    }
  }

  // That the updater has begun to write into the test's new Redis.
  void expect_writing() {
    EXPECT_TRUE(wait_until([&] { return command_count("append") > 0; }, kPatience));
  }

  // That the updater, to which events are produced meanwhile, goes about its work: so many more
  // appends.
  void expect_appends(long long more) {
    const long long before = command_count("append");
    EXPECT_TRUE(wait_until([&] { return command_count("append") >= before + more; }, kPatience));
  }

  void expect_all_counted(Process& updater) {
    producer_->flush();
    ExpectedLedgers::Difference difference;
    wait_until(
        [&] {
          difference = expected_.compare(*store_);
          return difference.missing + difference.unreadable == 0;
        },
        kPatience);
    EXPECT_TRUE(updater.running()) << updater.errors();
    EXPECT_EQ(difference.missing, 0U) << "FCAP_TEST_SEED=" << test_seed(kSeed) << "\n"
                                      << updater.errors();
    EXPECT_EQ(difference.surplus, 0U) << "FCAP_TEST_SEED=" << test_seed(kSeed);
    EXPECT_EQ(difference.unreadable, 0U) << "FCAP_TEST_SEED=" << test_seed(kSeed);
    EXPECT_EQ(expected_.wrong_expiries(*redis_, kRetention), "");
  }

  void expect_orderly_end(Process& updater) {
    updater.send_signal(SIGTERM);
    updater.send_signal(SIGTERM);  // as timeout(1) does
    EXPECT_TRUE(updater.wait_for(milliseconds{60'000})) << updater.errors();
    EXPECT_EQ(updater.exit_code(), 0) << updater.errors();
    EXPECT_EQ(kafka->committed_sum(topic_, topic_, kPartitions),
              kafka->end_sum(topic_, kPartitions))
        << updater.errors();
  }

  testing::TemporaryDirectory files_;
  std::unique_ptr<Store> store_;
  std::string config_;
  EventMaker maker_{test_seed(kSeed), 2000};
  ExpectedLedgers expected_;
};

TEST_F(UpdaterFaults, KilledAtRandomMomentsItLosesAndDoublesNothing) {
  std::mt19937_64 random(test_seed(kSeed));
  std::uniform_int_distribution<int> life_ms(100, 1500);
  std::uniform_int_distribution<long long> life_appends(1, 3'000);
  auto updater = start_updater();
  std::atomic<bool> over{false};
  std::thread killer([&] {
    for (int i = 0; i < 8; ++i) {
      // By turns at any moment, such as before it has joined the group, and at its work.
      if (i % 2 == 0) {
        std::this_thread::sleep_for(milliseconds{life_ms(random)});
      } else {
        expect_appends(life_appends(random));
      }
      updater->kill();
      updater = start_updater();
    }
    over = true;
  });
  while (!over) produce_over(1'000, milliseconds{130});
  killer.join();
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, ABrokerThatIsKilledAndComesBackLosesNothing) {
  auto updater = start_updater();
  produce(20'000);
  expect_writing();
  std::thread breaker([&] {
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(milliseconds{500});
      kafka->kill();
      std::this_thread::sleep_for(milliseconds{500});
      kafka->start();
    }
  });
  produce_over(20'000, milliseconds{5'000});
  breaker.join();
  producer_->flush();
  // A broker that comes back may fence its static member, which is fatal for Kafka's client. Then
  // the process ends and is started again, as systemd does.
  const auto start_again = [&] {
    if (updater->running()) return;
    EXPECT_EQ(updater->exit_code(), 1) << updater->errors();
    updater = start_updater();
  };
  // Only a commit tells it that it was fenced, so that it may end until all is committed.
  EXPECT_TRUE(wait_until(
      [&] {
        start_again();
        return expected_.compare(*store_).missing == 0 &&
               kafka->committed_sum(topic_, topic_, kPartitions) ==
                   kafka->end_sum(topic_, kPartitions);
      },
      kPatience))
      << updater->errors();
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, ARedisThatIsKilledAndComesBackEmptyIsFilledAgain) {
  auto updater = start_updater();
  produce(1'000);
  expect_writing();
  std::thread breaker([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(milliseconds{800});
      redis_->kill();
      std::this_thread::sleep_for(milliseconds{200});
      redis_->start();
    }
  });
  produce_over(30'000, milliseconds{4'000});
  breaker.join();
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, BothKilledAtOnceWithAnOldSnapshotLoseNothing) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  ASSERT_EQ(redis_->command({"SAVE"}), "OK");
  produce_over(20'000, milliseconds{1'000});
  redis_->kill();
  updater->kill();
  produce(5'000);
  redis_->start();
  updater = start_updater();
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, AFullRedisHoldsItUpUntilThereIsRoom) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  redis_->command({"CONFIG", "SET", "maxmemory", "1mb"});
  produce(10'000);
  producer_->flush();
  EXPECT_TRUE(
      wait_until([&] { return updater->errors().find("OOM") != std::string::npos; }, kPatience))
      << "Redis has refused nothing, so nothing was tested: " << updater->errors();
  EXPECT_LE(kafka->committed_sum(topic_, topic_, kPartitions), 10'000);
  redis_->command({"CONFIG", "SET", "maxmemory", "0"});
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, PostgresGoneBeforeTheStartAndDuringStopsNoCounting) {
  if (!PostgresServer::available()) GTEST_SKIP() << "PostgreSQL is missing";
  PostgresServer postgres;
  const std::string database = postgres.new_database();
  postgres.sql(database,
               "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 3, 86400)");
  postgres.sql(database, "CHECKPOINT");  // its commits are asynchronous, and it will be killed
  write_config(R"(, "rules": {"poll_interval": "1s"}, "postgres": {"conninfo": ")" + database +
               "\"}");
  const auto said = [](const Process& updater, const char* text) {
    return wait_until([&] { return updater.errors().find(text) != std::string::npos; }, kPatience);
  };

  postgres.kill();
  auto updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  EXPECT_TRUE(said(*updater, "no rules yet")) << updater->errors();
  postgres.start();
  EXPECT_TRUE(said(*updater, "from postgres, rules: 1")) << updater->errors();

  std::thread breaker([&] {
    postgres.freeze();
    std::this_thread::sleep_for(milliseconds{1'500});
    postgres.kill();
  });
  produce_over(20'000, milliseconds{2'000});
  breaker.join();
  expect_all_counted(*updater);
  EXPECT_TRUE(said(*updater, "not refreshed")) << updater->errors();
  expect_orderly_end(*updater);

  postgres.start();
  postgres.freeze();
  updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  expect_orderly_end(*updater);
}

// A figure of /proc/PID/status, in bytes.
long long memory_of(const Process& process, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(process.pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return -1;
}

// The record is compacted again and again while events are appended. Whether that is so at any rate
// is a matter of the machine: here the events wait for it.
TEST_F(UpdaterFaults, AUserOfAMillionEventsTakesBoundedMemory) {
  constexpr int kEvents = 1'000'000;
  constexpr long long kMiB = 1LL << 20U;
  const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  const auto length = [this] { return redis_->number({"STRLEN", "fcap:{bot}"}); };
  auto updater = start_updater();
  long long longest = 0;
  const auto is_short = [&] {
    const long long now_long = length();
    longest = std::max(longest, now_long);
    return now_long < kMiB;
  };
  const auto committed = [&] { return kafka->committed_sum(topic_, topic_, kPartitions); };
  for (int i = 0; i < kEvents; ++i) {
    const MadeEvent event{.user_id = "bot",
                          .campaign_id = fmt::format("c{}", i % 20),
                          .event_id = fmt::format("event-{}", i),
                          .time = now - milliseconds{kEvents - i}};
    producer_->send(topic_, event.user_id, event.json());
    if (i % 20'000 != 0) continue;
    ASSERT_TRUE(wait_until(is_short, kPatience)) << updater->errors();
    ASSERT_TRUE(wait_until([&] { return committed() >= i - 100'000; }, kPatience))
        << updater->errors();
  }
  producer_->flush();
  EXPECT_TRUE(wait_until([&] { return is_short() && committed() == kEvents; }, kPatience))
      << updater->errors();
  const long long updater_peak = memory_of(*updater, "VmHWM");
  expect_orderly_end(*updater);
  // The events take 20 MB as they are appended.
  EXPECT_LT(longest, 5 * kMiB);
  EXPECT_LE(length(), 16 * 1024);
  EXPECT_LT(updater_peak, 512 * kMiB);
  const std::string memory = redis_->command({"INFO", "memory"});
  constexpr std::string_view kPeak = "used_memory_peak:";
  EXPECT_LT(std::stoll(memory.substr(memory.find(kPeak) + kPeak.size())), 128 * kMiB);

  // What is left is the newest, without a gap: one event a millisecond.
  ledger::Ledger left;
  ASSERT_EQ(left.decode(testing::StoreCalls(*store_).get("fcap:{bot}").record),
            ledger::DecodeCode::kOk);
  ASSERT_TRUE(left.complete_since());
  const auto covered = now - *left.complete_since();
  EXPECT_GT(covered, milliseconds{1'000});
  EXPECT_EQ(std::count_if(left.times().begin(), left.times().end(),
                          [&](Instant at) { return at >= *left.complete_since(); }),
            covered / milliseconds{1});
}

TEST_F(UpdaterFaults, AReplayOfEverythingFindsEverythingThere) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  const auto replayed = testing::run(
      {FCAP_UPDATER_BINARY, "replay", "--config", config_, "--group", topic_ + "-r", "--json"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.errors;
  EXPECT_NE(replayed.output.find(R"("added":0,"already_there":10000)"), std::string::npos)
      << replayed.output;
  EXPECT_NE(replayed.output.find(R"("changed_nothing":true)"), std::string::npos);
  expect_orderly_end(*updater);
}

TEST_F(UpdaterFaults, AReplayOfARangeThatHoldsNothingIsNoSuccess) {
  produce(10);
  const auto replay = [&](const std::vector<std::string>& range) {
    std::vector<std::string> command{FCAP_UPDATER_BINARY, "replay", "--config", config_};
    command.insert(command.end(), range.begin(), range.end());
    return testing::run(command);
  };
  const auto future = replay({"--from", "2999-01-01T00:00:00Z"});
  EXPECT_EQ(future.exit_code, 1);
  EXPECT_NE(future.output.find("nothing was replayed"), std::string::npos) << future.output;
  EXPECT_NE(future.errors.find("no message in the range given"), std::string::npos)
      << future.errors;
  const auto behind = replay({"--from-offset", "0:99999999"});
  EXPECT_EQ(behind.exit_code, 2);
  EXPECT_NE(behind.errors.find("partition 0 ends at"), std::string::npos) << behind.errors;
  const auto nowhere = replay({"--from-offset", "99:0"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.errors.find("partition 99: an offset is given, but topic"), std::string::npos)
      << nowhere.errors;
}

TEST_F(UpdaterFaults, AReplayIntoARedisThatIsEmptiedMeanwhileBeginsAgain) {
  produce(20'000);
  producer_->flush();
  // It gets so far and no further.
  const std::string memory = redis_->command({"INFO", "memory"});
  const auto used = std::stoll(memory.substr(memory.find("used_memory:") + 12));
  redis_->command({"CONFIG", "SET", "maxmemory", std::to_string(used + 300'000)});
  Process replaying({FCAP_UPDATER_BINARY, "replay", "--config", config_, "--group", topic_ + "-r"});
  ASSERT_TRUE(wait_until([&] { return redis_->number({"DBSIZE"}) > 100; }, kPatience));
  redis_->command({"FLUSHALL"});
  redis_->command({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_TRUE(replaying.wait_for(kPatience)) << replaying.errors();
  EXPECT_EQ(replaying.exit_code(), 0) << replaying.errors();
  EXPECT_NE(replaying.errors().find("beginning again"), std::string::npos) << replaying.errors();
  EXPECT_EQ(expected_.compare(*store_).missing, 0U) << replaying.errors();
}

}  // namespace faults_path_test
}  // namespace fcap
