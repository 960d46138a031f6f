// The write path over a Redis that is slow, not dead: it is kept busy, not drowned.

#include <gtest/gtest.h>

#include "support/slow_redis.h"
#include "support/updater_pipeline.h"

namespace fcap {
namespace slow_redis_kafka_test {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::SlowRedis;
using testing::wait_until;

class UpdaterSlowRedis : public testing::UpdaterPipeline {
 protected:
  pid_t redis_pid() const {
    const std::string info = redis_->command({"INFO", "server"});
    constexpr std::string_view kName = "process_id:";
    return std::stoi(info.substr(info.find(kName) + kName.size()));
  }
  void produce_backlog(std::size_t events) {
    maker_ = testing::EventMaker(test_seed(kSeed), 100'000);
    produce(events);
    producer_->flush();
  }
  void expect_written(const RunningUpdater& updater, std::size_t events) {
    const auto written = [&] { return updater.metrics().events_written.value(); };
    EXPECT_TRUE(wait_until([&] { return written() >= events; }, 5 * kPatience)) << written();
  }
  // Hardly more appends than were needed.
  void expect_written_once(RunningUpdater& updater) {
    const auto appends = command_count("append");
    const auto needed = static_cast<long long>(updater.metrics().records_written.value());
    EXPECT_LE(appends, needed + needed / 10) << updater.log();
    // One per partition: this machine may stand still for longer than an updater is patient.
    EXPECT_LE(updater.metrics().mark_failures.value(), kPartitions) << updater.log();
    EXPECT_EQ(updater.log().find("cannot be set to offset"), std::string::npos) << updater.log();
    expect_all_counted(updater);
  }
};

TEST_F(UpdaterSlowRedis, SOAK_ABacklogIsWrittenOnce) {
  constexpr std::size_t kEvents = 40'000;
  produce_backlog(kEvents);
  std::unique_ptr<RunningUpdater> updater;
  {
    const SlowRedis slow(redis_pid());
    updater = start_updater();
    expect_written(*updater, kEvents / 2);
    EXPECT_GT(updater->metrics().marks_written.value(), kPartitions)
        << "marks move meanwhile, beyond those of the start";
    expect_written(*updater, kEvents);
  }
  expect_written_once(*updater);
}

// What was sent to a fast Redis is far more than a slow one does within a deadline.
TEST_F(UpdaterSlowRedis, SOAK_ARedisThatBecomesSlowIsNotDrowned) {
  constexpr std::size_t kEvents = 120'000;
  produce_backlog(kEvents);
  const auto updater = start_updater();
  expect_written(*updater, kEvents / 3);
  {
    const SlowRedis slow(redis_pid());
    expect_written(*updater, kEvents);
  }
  expect_written_once(*updater);
}

}  // namespace slow_redis_kafka_test
}  // namespace fcap
