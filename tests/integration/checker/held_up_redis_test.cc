// A Checker whose callbacks take long: they hold up its own thread, and the server is not to blame.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "support/checker_test.h"
#include "support/tcp_proxy.h"

namespace fcap {
namespace held_up_redis_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using ::testing::HasSubstr;
using testing::wait_until;

using Clock = std::chrono::steady_clock;
constexpr Candidate kCandidates[] = {{"c1"}};

class CheckerHeldUp : public testing::CheckerBothWaysTest {
 protected:
  void SetUp() override {
    CheckerBothWaysTest::SetUp();
    if (world_) proxy_ = std::make_unique<testing::TcpProxy>(world_->redis.port());
  }

  std::unique_ptr<Checker> make(std::chrono::milliseconds stale_reset = 30s) {
    CheckerOptions options = world_->options();
    options.redis.addresses = {proxy_->address()};
    options.redis.stale_reset = stale_reset;
    options.redis.mget_keys_max = 1;  // each read has a reply of its own
    options.log = [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      logged_.append(line).append("\n");
    };
    begun_ = answered_ = 0;
    return CheckerWorld::connected(options);
  }
  std::string logged() {
    const std::lock_guard lock(mutex_);
    return logged_;
  }

  // Many checks that Redis executes while no answer comes through.
  void begin_others(Checker& checker) {
    constexpr int kOthers = 200;  // far more failures than open the breaker
    const long long before = reads_executed();
    first_over_at_ = Clock::now() + time_;
    for (int i = 0; i < kOthers; ++i) {
      ++begun_;
      // Each asks about a user of its own: reads of one user share an answer.
      checker.check_async("other" + std::to_string(i), kCandidates,
                          {.deadline = time_, .now = {}, .segments = {}},
                          [this](const CheckResult&) { ++answered_; });
    }
    all_over_at_ = Clock::now() + time_;
    EXPECT_TRUE(wait_until([&] { return reads_executed() >= before + kOthers; }));
  }
  // A check whose time is over before it is submitted is answered by another thread.
  static bool is_io_thread() {
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    return std::string_view(name).starts_with("fcap-redis");
  }
  // A check whose callback keeps the I/O thread until the time of the others is over.
  void begin_holding(Checker& checker, std::chrono::microseconds deadline) {
    ++begun_;
    checker.check_async("holds", kCandidates, {.deadline = deadline, .now = {}, .segments = {}},
                        [this](const CheckResult& result) {
                          held_up_ = is_io_thread() && Clock::now() < first_over_at_.load();
                          reason_ = result.reason;
                          std::this_thread::sleep_until(all_over_at_.load() + 10ms);
                          ++answered_;
                        });
  }
  // Waits until all have ended. Whether the time of the others went by inside the callback, on the
  // I/O thread: where this machine was too slow for that, the round says nothing, and the next one
  // has more time.
  bool ends() {
    EXPECT_TRUE(wait_until([this] { return answered_ >= begun_ - 1; }));
    proxy_->stall_replies(false);
    EXPECT_TRUE(wait_until([this] { return answered_ == begun_; }));
    if (!held_up_) time_ = std::min<std::chrono::milliseconds>(2 * time_, 10s);
    return held_up_;
  }
  void expect_no_blame(Checker& checker) {
    EXPECT_NE(own_stalls(checker), "0");
    EXPECT_GT(checker.stats().unjudged[Reason::kTimeout], 0U);
    EXPECT_EQ(checker.health().store.breaker_openings, 0U);
    EXPECT_TRUE(wait_until([this] {
      return logged().find("a callback that takes long") != std::string::npos;
    })) << logged();
    EXPECT_EQ(CheckerWorld::reason(checker, "u"), Reason::kPassed);
  }

  std::unique_ptr<testing::TcpProxy> proxy_;
  std::atomic<Reason> reason_{Reason::kPassed};  // why the check that holds was answered so

 private:
  [[nodiscard]] long long reads_executed() const {
    const std::string stats = world_->redis.command({"INFO", "commandstats"});
    constexpr std::string_view kName = "cmdstat_get:calls=";
    const auto at = stats.find(kName);
    return at == std::string::npos ? 0 : std::stoll(stats.substr(at + kName.size()));
  }
  static std::string own_stalls(const Checker& checker) {
    for (const auto& [name, value] : checker.health().store.more) {
      if (name == "own_stalls") return value;
    }
    return {};
  }

  std::chrono::milliseconds time_ = 500ms;  // that the others have
  std::atomic<Clock::time_point> first_over_at_{};
  std::atomic<Clock::time_point> all_over_at_{};
  std::atomic<int> begun_{0};
  std::atomic<int> answered_{0};
  std::atomic<bool> held_up_{false};
  std::mutex mutex_;
  std::string logged_;  // guarded by mutex_
};

TEST_P(CheckerHeldUp, ASlowCallbackDoesNotLookLikeADeadRedis) {
  constexpr std::string_view kNothing = "$-1\r\n";
  EXPECT_TRUE(wait_until([&] {
    const auto checker = make();
    proxy_->stall_replies(true);
    begin_holding(*checker, 60s);
    begin_others(*checker);
    proxy_->let_pass(kNothing.size());  // the first one's answer
    if (!ends()) return false;
    EXPECT_EQ(reason_, Reason::kPassed);
    expect_no_blame(*checker);
    EXPECT_GE(checker->stats().async.callback_ns_max, 10'000'000U);
    return true;
  }));
}

// The callbacks of checks that timed out hold up the thread as well as those that were answered.
TEST_P(CheckerHeldUp, ASlowCallbackOfATimeoutDoesNotLookLikeADeadRedis) {
  EXPECT_TRUE(wait_until([&] {
    const auto checker = make();
    proxy_->stall_replies(true);
    begin_others(*checker);
    begin_holding(*checker, 5ms);
    if (!ends()) return false;
    EXPECT_EQ(reason_, Reason::kTimeout);
    expect_no_blame(*checker);
    return true;
  }));
}

// A reply that nobody could read is not overdue: the connection stays.
TEST_P(CheckerHeldUp, ACallbackThatTakesVeryLongDoesNotCostTheConnection) {
  constexpr auto kStaleReset = 2s;
  EXPECT_TRUE(wait_until([&] {
    const auto checker = make(kStaleReset);
    proxy_->stall_replies(true);
    std::promise<Clock::time_point> returned;
    checker->check_async("u", kCandidates, {.deadline = 50ms, .now = {}, .segments = {}},
                         [&](const CheckResult& result) {
                           EXPECT_EQ(result.reason, Reason::kTimeout);
                           std::this_thread::sleep_for(kStaleReset + 200ms);
                           returned.set_value(Clock::now());
                         });
    const auto returned_at = returned.get_future().get();
    // With its end, the I/O thread has looked at what is overdue.
    std::promise<void> late;
    checker->check_async("u", kCandidates, {.deadline = 1ms, .now = {}, .segments = {}},
                         [&](const CheckResult&) { late.set_value(); });
    late.get_future().wait();
    proxy_->stall_replies(false);
    EXPECT_TRUE(wait_until([&] { return CheckerWorld::reason(*checker, "u") == Reason::kPassed; }));
    // On a machine that stalled meanwhile it may have become overdue after all.
    if (Clock::now() - returned_at >= kStaleReset) return false;
    EXPECT_EQ(checker->health().store.reconnects, 0U);
    return true;
  }));
}

FCAP_BOTH_WAYS(CheckerHeldUp);

}  // namespace held_up_redis_test
}  // namespace fcap
