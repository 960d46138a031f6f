// A refresher whose only source is a snapshot file: needs no server.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "rule_text/snapshot.h"
#include "sources/rule_refresher.h"
#include "support/temporary_directory.h"

namespace fcap::sources {
namespace refresher_file_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr seconds kPatience{60};

RuleSetSpec spec_with(std::uint64_t version, std::size_t rules) {
  RuleSetSpec spec;
  spec.version = version;
  for (std::size_t i = 0; i < rules; ++i) {
    Rule rule;
    rule.id = "r" + std::to_string(i);
    rule.scope = Scope::kUser;
    rule.limit = 3;
    rule.window.length = std::chrono::hours{i % 700 + 1};
    spec.rules.push_back(std::move(rule));
  }
  return spec;
}

template <typename Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(milliseconds{2});
  }
  return true;
}

class RefresherOnAFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.file("rules.snapshot"); }

  void publish(std::uint64_t version, std::size_t rules) {
    ASSERT_TRUE(rule_text::write_snapshot(path(), spec_with(version, rules)).ok());
  }

  RuleRefresher& make(milliseconds poll_interval = milliseconds{20}) {
    RuleSourceOptions options;
    options.snapshot_file = path();
    options.poll_interval = poll_interval;
    refresher_ = std::make_unique<RuleRefresher>(
        options, RuleSet::Options{},
        [this](std::shared_ptr<const RuleSet> set) {
          const std::lock_guard lock(mutex_);
          current_ = std::move(set);
          sigset_t blocked;
          ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
          signals_blocked_ =
              ::sigismember(&blocked, SIGTERM) == 1 && ::sigismember(&blocked, SIGUSR1) == 1;
        },
        [this](LogLevel, std::string_view line) {
          const std::lock_guard lock(mutex_);
          log_.emplace_back(line);
        });
    return *refresher_;
  }

  std::shared_ptr<const RuleSet> current() {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  std::size_t logged(const std::string& part) {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const std::string& line : log_) count += line.find(part) == std::string::npos ? 0U : 1U;
    return count;
  }
  bool signals_blocked() {
    const std::lock_guard lock(mutex_);
    return signals_blocked_;
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::shared_ptr<const RuleSet> current_;
  std::vector<std::string> log_;
  bool signals_blocked_ = false;
  std::unique_ptr<RuleRefresher> refresher_;  // last: its thread uses the others
};

TEST_F(RefresherOnAFile, HandsOutTheFileBeforeStartReturns) {
  publish(3, 2);
  ASSERT_TRUE(make().start(kPatience).ok());
  ASSERT_TRUE(current());
  EXPECT_EQ(current()->version(), 3U);
  EXPECT_EQ(refresher_->state().source, "snapshot");
  EXPECT_TRUE(signals_blocked());
}

TEST_F(RefresherOnAFile, FollowsAReplacedFile) {
  publish(3, 2);
  ASSERT_TRUE(make().start(kPatience).ok());
  publish(4, 3);
  EXPECT_TRUE(soon([&] { return current()->version() == 4; }));
}

// A receiver that waits for its own reference to be the last one must get there.
TEST_F(RefresherOnAFile, KeepsNoFormerSet) {
  publish(3, 2);
  ASSERT_TRUE(make(std::chrono::hours{1}).start(kPatience).ok());
  const std::shared_ptr<const RuleSet> former = current();
  publish(4, 3);
  refresher_->poke();
  ASSERT_TRUE(soon([&] { return current()->version() == 4; }));
  EXPECT_TRUE(soon([&] { return former.use_count() == 1; }));
}

// Both sets are held at once while checks change over, so that a reload would take twice the
// memory.
TEST_F(RefresherOnAFile, AReloadSharesWhatHasNotChanged) {
  publish(3, 1000);
  ASSERT_TRUE(make(std::chrono::hours{1}).start(kPatience).ok());
  const std::shared_ptr<const RuleSet> former = current();
  RuleSetSpec spec = spec_with(4, 1000);
  spec.rules[500].limit = 4;
  ASSERT_TRUE(rule_text::write_snapshot(path(), spec).ok());
  refresher_->poke();
  ASSERT_TRUE(soon([&] { return current()->version() == 4; }));
  const auto& rules = current()->rules();
  EXPECT_EQ(rules[500].limit, 4U);
  std::size_t shared = 0;
  for (std::size_t i = 0; i < rules.size(); ++i)
    shared += &rules[i] == &former->rules()[i] ? 1U : 0U;
  EXPECT_GE(shared, 900U);
}

TEST_F(RefresherOnAFile, AMissingFileIsWaitedFor) {
  const Status status = make().start(kPatience);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.retryable());
  EXPECT_THAT(status.text(), HasSubstr(path()));
  publish(3, 2);
  EXPECT_TRUE(soon([&] { return current() != nullptr; }));
  EXPECT_TRUE(soon([&] { return refresher_->state().last_error.empty(); }));
}

TEST_F(RefresherOnAFile, ACorruptFileLeavesTheLastGoodRules) {
  publish(3, 2);
  ASSERT_TRUE(make().start(kPatience).ok());
  std::ofstream(path()) << "half a fi";
  EXPECT_TRUE(soon([&] { return refresher_->state().refused >= 3; }));
  EXPECT_EQ(current()->version(), 3U);
  EXPECT_EQ(logged("not refreshed"), 1U) << "the same failure is logged once";
  publish(4, 2);
  EXPECT_TRUE(soon([&] { return current()->version() == 4; }));
}

TEST_F(RefresherOnAFile, ARemovedFileLeavesTheLastGoodRules) {
  publish(3, 2);
  ASSERT_TRUE(make().start(kPatience).ok());
  std::filesystem::remove(path());
  EXPECT_TRUE(soon([&] { return refresher_->state().failed >= 1; }));
  EXPECT_EQ(current()->version(), 3U);
}

TEST_F(RefresherOnAFile, AShrunkenFileIsRefused) {
  publish(3, 10);
  ASSERT_TRUE(make().start(kPatience).ok());
  publish(4, 4);
  EXPECT_TRUE(soon([&] { return refresher_->state().refused >= 1; }));
  EXPECT_EQ(current()->version(), 3U);
  publish(5, 5);
  EXPECT_TRUE(soon([&] { return current()->version() == 5; }));
}

TEST_F(RefresherOnAFile, ATouchedFileIsYoungerAndNotLoadedAgain) {
  publish(3, 2);
  const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), hour_ago, 0), 0);
  ASSERT_TRUE(make().start(kPatience).ok());
  EXPECT_GE(refresher_->state().age, std::chrono::minutes{59}) << "its publisher may be dead";
  ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), nullptr, 0), 0);
  EXPECT_TRUE(soon([&] { return refresher_->state().age < std::chrono::minutes{59}; }));
  EXPECT_EQ(refresher_->state().reloads, 1U);
}

TEST_F(RefresherOnAFile, APokeLooksAtOnce) {
  publish(3, 2);
  ASSERT_TRUE(make(std::chrono::hours{1}).start(kPatience).ok());
  publish(4, 2);
  refresher_->poke();
  EXPECT_TRUE(soon([&] { return current()->version() == 4; }));
}

TEST_F(RefresherOnAFile, TheDestructorDoesNotWaitForTheNextPoll) {
  publish(3, 2);
  ASSERT_TRUE(make(std::chrono::hours{1}).start(kPatience).ok());
  refresher_.reset();
  EXPECT_EQ(current()->version(), 3U) << "what was handed out lives on";
}

// Fails only by a crash, a hang or a sanitizer's report: there is nothing else to see.
TEST_F(RefresherOnAFile, OneThatWasNeverStartedLoadsNothing) {
  publish(1, 2);
  make();
  refresher_.reset();  // must not wait for a thread that never was
  EXPECT_EQ(current_, nullptr);
  EXPECT_EQ(logged(""), 0U);
}

TEST(RuleRefresher, RefusesOptionsThatCannotWork) {
  const auto refused = [](RuleSourceOptions options) {
    RuleRefresher refresher(
        std::move(options), {}, [](const auto&) {}, nullptr);
    const Status status = refresher.start(kPatience);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(status.retryable());
    return status.text();
  };
  EXPECT_THAT(refused({}), HasSubstr("rules.snapshot_file"));
  RuleSourceOptions options;
  options.postgres = "host=x hunter2";
  EXPECT_THAT(refused(options), ::testing::Not(HasSubstr("hunter2")));
  options.postgres.clear();
  options.snapshot_file = "x";
  options.shrink_refused_below = 1.5;
  EXPECT_THAT(refused(options), HasSubstr("shrink_refused_below"));
}

}  // namespace refresher_file_test
}  // namespace fcap::sources
