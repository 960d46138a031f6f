// The write path over a Redis that is slow, not dead: it is kept busy, not drowned.
#include <csignal>
#include <cstdio>
#include <thread>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::wait_until;

/// Stops a Redis most of the time: about 10,000 appends per second are left.
class SlowRedis {
 public:
  explicit SlowRedis(pid_t redis)
      : thread_([redis](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            ::kill(redis, SIGSTOP);
            std::this_thread::sleep_for(milliseconds{50});
            ::kill(redis, SIGCONT);
            std::this_thread::sleep_for(milliseconds{1});
          }
        }) {}

 private:
  std::jthread thread_;
};

class UpdaterSlowRedis : public testing::UpdaterPipeline {
 protected:
  pid_t redis_pid() const {
    const std::string info = redis_->command({"INFO", "server"});
    constexpr std::string_view kName = "process_id:";
    return std::stoi(info.substr(info.find(kName) + kName.size()));
  }
  /// How often a command was executed.
  long long calls(const std::string& command) const {
    const std::string stats = redis_->command({"INFO", "commandstats"});
    const std::string name = "cmdstat_" + command + ":calls=";
    const auto at = stats.find(name);
    return at == std::string::npos ? 0 : std::stoll(stats.substr(at + name.size()));
  }
};

TEST_F(UpdaterSlowRedis, ABacklogIsWrittenOnce) {
  constexpr std::size_t kEvents = 100'000;
  maker_ = testing::EventMaker(test_seed(kSeed), 100'000);
  produce(kEvents);
  producer_->flush();
  std::int64_t halfway_marks = 0;
  std::unique_ptr<RunningUpdater> updater;
  const auto started = std::chrono::steady_clock::now();
  {
    const SlowRedis slow(redis_pid());
    updater = start_updater();
    const auto written = [&] { return updater->metrics().events_written.value(); };
    EXPECT_TRUE(wait_until([&] { return written() >= kEvents / 2; }, kPatience)) << written();
    halfway_marks = static_cast<std::int64_t>(updater->metrics().marks_written.value());
    EXPECT_TRUE(wait_until([&] { return written() >= kEvents; }, kPatience)) << written();
  }
  const auto took = std::chrono::steady_clock::now() - started;
  RecordProperty("seconds", std::to_string(took / std::chrono::seconds{1}));
  const auto appends = calls("append");
  std::printf("%lld appends for %zu events in %lld ms, %llu records, %llu retries, %llu rewinds\n",
              appends, kEvents, static_cast<long long>(took / milliseconds{1}),
              static_cast<unsigned long long>(updater->metrics().records_written.value()),
              static_cast<unsigned long long>(updater->metrics().write_retries.value()),
              static_cast<unsigned long long>(updater->metrics().rewinds.value()));
  EXPECT_GT(halfway_marks, 3 * kPartitions) << "marks move meanwhile";
  const auto needed = static_cast<long long>(updater->metrics().records_written.value());
  EXPECT_LE(appends, needed + needed / 10) << updater->log();
  expect_all_counted(*updater);
}

}  // namespace
}  // namespace fcap
