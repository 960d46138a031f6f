// What a library owes the process that it lives in.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rule_text/snapshot.h"
#include "support/checker_test.h"
#include "support/process.h"

namespace fcap {
namespace guest_redis_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using testing::wait_until;

class CheckerGuest : public testing::CheckerBothWaysTest {};

std::set<std::string> entries_of(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename());
  }
  return names;
}

std::string name_of(const std::string& thread) {
  std::ifstream comm("/proc/self/task/" + thread + "/comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

// The signals that a thread blocks, as the bits of /proc's SigBlk; empty: it has ended.
std::optional<std::uint64_t> blocked_signals(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return std::nullopt;
}

TEST_P(CheckerGuest, PeerThatClosesUnderLoadRaisesNoSigpipe) {
  struct sigaction disposition {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &disposition), 0);
  ASSERT_EQ(disposition.sa_handler, SIG_DFL) << "the test needs the default disposition";
  CheckerOptions options = world_->options();
  options.redis.breaker_failures = 0;
  options.redis.reconnect_backoff_min = 1ms;
  options.redis.reconnect_backoff_max = 2ms;
  const auto checker = CheckerWorld::connected(options);
  std::atomic<int> judged{0};
  testing::Load load(4, [&] {
    if (CheckerWorld::reason(*checker, "u", 1s) == Reason::kPassed) ++judged;
  });
  for (int round = 0; round < 40; ++round) {
    const int before = judged;
    EXPECT_TRUE(wait_until([&] { return judged > before; }));
    world_->redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  }
  world_->redis.kill();
  EXPECT_TRUE(
      wait_until([&] { return CheckerWorld::reason(*checker, "u", 5ms) == Reason::kUnavailable; }));
  load.stop();
}

// The signals that a fault raises on its own thread, and that of profilers: the host's handlers
// must be called for them.
bool must_stay_open(int signal) {
  static const std::set<int> open = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                     SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
  return open.contains(signal);
}

TEST_P(CheckerGuest, ItsThreadsLeaveTheHostsSignalsToTheHostAndTheCallersMaskStays) {
  const testing::TemporaryDirectory directory;
  const std::string snapshot = directory.path() / "rules";
  ASSERT_TRUE(
      rule_text::write_snapshot(snapshot, RuleSetSpec{.version = 1, .rules = {}, .campaigns = {}})
          .ok());
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  std::thread([] {}).join();  // with the first one, ThreadSanitizer starts a thread of its own
  const std::set<std::string> known = entries_of("/proc/self/task");

  CheckerOptions options = world_->options();
  options.rules.snapshot_file = snapshot;
  // By name, so that whatever resolves names is at work too.
  options.redis.addresses = {"localhost:" + std::to_string(world_->redis.port())};
  auto made = Checker::create(options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  ASSERT_TRUE(made.value()->wait_ready(30s));

  // A thread that has just been started still has its parent's name, and glibc blocks its signals.
  std::map<std::string, std::string> own;  // names by thread
  EXPECT_TRUE(wait_until([&] {
    own.clear();
    for (const std::string& thread : entries_of("/proc/self/task")) {
      if (!known.contains(thread)) own[thread] = name_of(thread);
    }
    return own.size() >= 2 && std::ranges::all_of(own, [](const auto& thread) {
             return thread.second.starts_with("fcap-");
           });
  })) << ::testing::PrintToString(own);
  for (const auto& [thread, name] : own) {
    const std::optional<std::uint64_t> blocked = blocked_signals(thread);
    if (!blocked) continue;  // it has ended
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
      // Two cannot be blocked, and glibc keeps those below SIGRTMIN for itself.
      if (signal == SIGKILL || signal == SIGSTOP || (signal > 31 && signal < SIGRTMIN)) continue;
      EXPECT_EQ((*blocked >> (signal - 1)) & 1U, must_stay_open(signal) ? 0U : 1U)
          << "signal " << signal << ", " << name;
    }
  }
  sigset_t after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << "signal " << signal;
  }
  made.value().reset();
  // The kernel shows a thread for a moment after it has been joined.
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::includes(known, entries_of("/proc/self/task"));
  })) << "threads are left behind";
}

TEST_P(CheckerGuest, AFaultInACallbackReachesTheHostsHandler) {
  constexpr int kHandlerRan = 42;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = [](int) { ::_exit(kHandlerRan); };
    ::sigaction(SIGSEGV, &action, nullptr);
    const auto checker = CheckerWorld::connected(world_->options());
    void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Candidate candidates[] = {{"c1"}};
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the fault is what is tested
    checker->check_async("u", candidates, {},
                         [page](const CheckResult&) { *static_cast<volatile char*>(page) = 1; });
    std::this_thread::sleep_for(1min);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kHandlerRan) << "wait status " << status;
}

TEST_P(CheckerGuest, TheHostIsToldOfEachThreadByName) {
  std::mutex mutex;
  std::set<std::string> told;
  CheckerOptions options = world_->options();
  options.redis.thread_started = [&](std::string_view name) {
    const std::lock_guard lock(mutex);
    told.emplace(name);
  };
  const testing::TemporaryDirectory directory;
  options.rules.snapshot_file = (directory.path() / "none").string();
  options.segments.directory = directory.path().string();
  const auto checker = CheckerWorld::connected(options);
  EXPECT_TRUE(wait_until([&] {
    const std::lock_guard lock(mutex);
    return told.contains("fcap-redis-0") && told.contains("fcap-rules") &&
           told.contains("fcap-segments") && told.contains("fcap-retired") &&
           told.contains("fcap-answers");
  })) << ::testing::PrintToString(told);
}

TEST_P(CheckerGuest, ItsDescriptorsAreClosedOnExecAndInTheEnd) {
  const std::set<std::string> known = entries_of("/proc/self/fd");
  {
    const auto checker = CheckerWorld::connected(world_->options());
    int own_descriptors = 0;
    for (const std::string& name : entries_of("/proc/self/fd")) {
      const int flags = ::fcntl(std::stoi(name), F_GETFD);
      if (known.contains(name) || flags < 0) continue;
      ++own_descriptors;
      EXPECT_TRUE(flags & FD_CLOEXEC) << "descriptor " << name;
    }
    EXPECT_GE(own_descriptors, 1);
  }
  EXPECT_EQ(entries_of("/proc/self/fd").size(), known.size());
}

TEST_P(CheckerGuest, ForksUnderLoadAreAnsweredForkedAndHarmNobody) {
  world_->record("u", 1);
  const auto checker = CheckerWorld::connected(world_->options());
  std::atomic<int> wrong{0};
  std::atomic<int> judged{0};
  testing::Load load(4, [&] {
    const Candidate candidates[] = {{"c1"}};
    const CheckResult result = checker->check("u", candidates);
    if (result.verdicts[0].reason != Reason::kCapped) ++wrong;
    ++judged;
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Candidate candidates[] = {{"c1"}};
      const CheckResult result = checker->check("u", candidates);
      const bool right = result.reason == Reason::kForked && result.verdicts[0].allowed;
      // The child ends its copy as a host would that unwinds.
      checker->~Checker();
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    const int before = judged;
    EXPECT_TRUE(wait_until([&] { return judged > before; }));
  }
  load.stop();
  EXPECT_EQ(wrong, 0);
}

TEST_P(CheckerGuest, DestructorAnswersEverythingThatAFrozenRedisHolds) {
  auto checker = CheckerWorld::connected(world_->options());
  world_->redis.freeze();
  constexpr int kPending = 1000;
  std::atomic<int> answered{0};
  std::atomic<int> for_another_reason{0};
  const Candidate candidates[] = {{"c1"}};
  for (int i = 0; i < kPending; ++i) {
    checker->check_async("u", candidates, {}, [&](CheckResult result) {
      if (result.reason != Reason::kShutdown || !result.verdicts[0].allowed) ++for_another_reason;
      ++answered;
    });
  }
  checker.reset();
  EXPECT_EQ(answered, kPending);
  EXPECT_EQ(for_another_reason, 0);
  world_->redis.thaw();
}

TEST_P(CheckerGuest, DestructorAnswersACallerWhoWaits) {
  for (int round = 0; round < 10; ++round) {
    auto checker = CheckerWorld::connected(world_->options());
    Checker* const used = checker.get();
    world_->redis.freeze();
    std::vector<std::jthread> callers;
    std::atomic<int> refused{0};
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        if (CheckerWorld::reason(*used, "u", 10min) == Reason::kShutdown) ++refused;
      });
    }
    EXPECT_TRUE(wait_until([&] { return used->stats().pending == 4; }));
    if (round > 0) std::this_thread::sleep_for(1ms);  // they may be anywhere on their way
    checker.reset();
    callers.clear();
    EXPECT_EQ(refused, 4);
    world_->redis.thaw();
  }
}

TEST_P(CheckerGuest, ErrnoStaysTheCallers) {
  const auto checker = CheckerWorld::connected(world_->options());
  errno = EDOM;
  EXPECT_EQ(CheckerWorld::reason(*checker, "u"), Reason::kPassed);
  EXPECT_EQ(errno, EDOM);
  world_->redis.freeze();
  errno = EDOM;
  EXPECT_EQ(CheckerWorld::reason(*checker, "u", 2ms), Reason::kTimeout);
  EXPECT_EQ(errno, EDOM);
  world_->redis.kill();
  EXPECT_TRUE(wait_until([&] {
    errno = EDOM;
    const Reason reason = CheckerWorld::reason(*checker, "u", 2ms);
    EXPECT_EQ(errno, EDOM);
    return reason == Reason::kUnavailable || reason == Reason::kBreakerOpen;
  }));
}

TEST_P(CheckerGuest, SignalsNeitherFailACheckNorMoveItsDeadline) {
  const auto checker = CheckerWorld::connected(world_->options());
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t here = ::pthread_self();
  const auto signal = [here] {
    ::pthread_kill(here, SIGUSR1);
    std::this_thread::sleep_for(50us);
  };
  {
    const testing::Load signals(1, signal);
    for (int i = 0; i < 2'000; ++i) EXPECT_EQ(CheckerWorld::reason(*checker, "u"), Reason::kPassed);
  }
  world_->redis.freeze();
  {
    const testing::Load signals(1, signal);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(CheckerWorld::reason(*checker, "u", 100ms), Reason::kTimeout);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 100ms);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
  world_->redis.thaw();
}

TEST_P(CheckerGuest, ACanceledThreadEndsWhenItsCheckHasEnded) {
  const auto checker = CheckerWorld::connected(world_->options());
  world_->redis.freeze();
  struct Caller {
    Checker& checker;
    std::atomic<bool> canceled{false};
    std::atomic<bool> answered{false};
    std::atomic<bool> went_on{false};
  } caller{*checker};
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    Caller& mine = *static_cast<Caller*>(given);
    const Reason reason = CheckerWorld::reason(mine.checker, "u", 200ms);
    mine.answered = reason == Reason::kTimeout;
    while (!mine.canceled) ::sched_yield();
    ::pthread_testcancel();
    mine.went_on = true;
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, &caller), 0);
  EXPECT_TRUE(wait_until([&] { return checker->stats().pending == 1 || caller.answered; }));
  ASSERT_EQ(::pthread_cancel(thread), 0);
  caller.canceled = true;
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(caller.answered);
  EXPECT_FALSE(caller.went_on);
  world_->redis.thaw();
  EXPECT_TRUE(wait_until([&] { return CheckerWorld::reason(*checker, "u") == Reason::kPassed; }));
}

TEST_P(CheckerGuest, CallbacksComeThroughTheExecutor) {
  std::mutex mutex;
  std::deque<std::function<void()>> tasks;
  CheckerOptions options = world_->options();
  options.executor = [&](std::function<void()> task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  };
  world_->record("u", 1);
  const auto checker = CheckerWorld::connected(options);
  const std::thread::id here = std::this_thread::get_id();
  const Candidate candidates[] = {{"c1"}};
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    checker->check_async("u", candidates, {}, [&](CheckResult result) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      EXPECT_EQ(result.verdicts[0].reason, Reason::kCapped);
      ++answered;
    });
  }
  EXPECT_TRUE(wait_until([&] {
    const std::lock_guard lock(mutex);
    return tasks.size() == 100;
  }));
  EXPECT_EQ(answered, 0);
  for (const auto& task : tasks) task();
  EXPECT_EQ(answered, 100);
}

TEST_P(CheckerGuest, BlockingCheckInACallbackIsRefusedOnTheIoThread) {
  const auto checker = CheckerWorld::connected(world_->options());
  std::atomic<bool> answered{false};
  const Candidate candidates[] = {{"c1"}};
  checker->check_async("u", candidates, {}, [&](const CheckResult&) {
    EXPECT_EQ(checker->check("u", candidates).reason, Reason::kReentrant);
    answered = true;
  });
  EXPECT_TRUE(wait_until([&] { return answered.load(); }));
}

FCAP_BOTH_WAYS(CheckerGuest);

}  // namespace guest_redis_test
}  // namespace fcap
