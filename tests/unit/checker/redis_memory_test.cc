// What becomes of a call where memory runs out on the host's thread, over the store for Redis.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "failing_new.h"
#include "fixtures.h"
#include "redis/config_record.h"
#include "redis/redis_store.h"
#include "tests/support/scripted_server.h"

namespace fcap::checker_test {
namespace redis_memory_test {

using redis::eventually;
using redis::ScriptedServer;

constexpr std::ptrdiff_t kAll = std::numeric_limits<std::ptrdiff_t>::max();
// Nobody listens there.
constexpr const char* kNobody = "127.0.0.1:1";

// What has come of the operations of one call.
class Outcomes final : public StoreCompletion, public StoreListCompletion {
 public:
  explicit Outcomes(std::size_t count) : counts_(count) {}
  void complete(const StoreOutcome& outcome) noexcept override { complete(0, outcome); }
  void complete(std::size_t index, const StoreOutcome& outcome) noexcept override {
    if (outcome.code == StoreCode::kOverloaded) ++overloaded_;
    ++counts_[index];
    ++all_;
  }
  [[nodiscard]] std::size_t overloaded() const { return overloaded_; }
  [[nodiscard]] bool all_there() const { return all_ >= counts_.size(); }
  void expect_one_each() const {
    for (const auto& count : counts_) EXPECT_EQ(count, 1U);
  }

 private:
  std::vector<std::atomic<std::size_t>> counts_;
  std::atomic<std::size_t> overloaded_{0};
  std::atomic<std::size_t> all_{0};
};

// With one failure, or nothing but failures from some allocation on.
class RedisOutOfMemory : public ::testing::TestWithParam<std::ptrdiff_t> {
 protected:
  enum class Server : std::uint8_t { kAnswers, kIsMissing, kClusterIsMissing };

  [[nodiscard]] RedisOptions options(Server server) const {
    RedisOptions options;
    options.addresses = {server == Server::kAnswers ? server_.address() : kNobody};
    if (server == Server::kClusterIsMissing) options.topology = RedisTopology::kCluster;
    return options;
  }

  // One that has not been used yet, so that much has to be allocated.
  [[nodiscard]] std::unique_ptr<Store> store(Server server) const {
    auto made = make_redis_store(options(server));
    EXPECT_TRUE(made.ok()) << made.status().text();
    std::unique_ptr<Store> store = std::move(made).value();
    EXPECT_TRUE(eventually([&] {
      const StoreHealth health = store->health();
      return server == Server::kAnswers ? health.connected : !health.last_error.empty();
    }));
    return store;
  }

  // Starts `count` operations with one more allocation that succeeds each time, until none fails.
  template <typename Start>
  void expect_each_completes_once(Server server, std::size_t count, const Start& start) const {
    bool failed = true;
    for (std::ptrdiff_t left = 0; failed && !HasFailure(); ++left) {
      SCOPED_TRACE("allocations that succeed: " + std::to_string(left));
      ASSERT_LT(left, 200);
      const std::unique_ptr<Store> used = store(server);
      Outcomes outcomes(count);
      fail_allocations_of_this_thread(left, GetParam());
      start(*used, outcomes);
      failed = end_of_failing_allocations();
      ASSERT_TRUE(eventually([&] { return outcomes.all_there(); }));
      outcomes.expect_one_each();
      // A text for people is the only thing that can be missing otherwise.
      if (server == Server::kAnswers) {
        EXPECT_EQ(outcomes.overloaded() > 0, failed);
      }
      // It goes on as if nothing had been.
      Outcomes later(count);
      start(*used, later);
      ASSERT_TRUE(eventually([&] { return later.all_there(); }));
      later.expect_one_each();
      EXPECT_EQ(later.overloaded(), 0U);
    }
  }

  template <typename Start>
  void expect_each_completes_once(std::size_t count, const Start& start) const {
    for (const Server server : {Server::kAnswers, Server::kIsMissing, Server::kClusterIsMissing}) {
      SCOPED_TRACE(static_cast<int>(server));
      expect_each_completes_once(server, count, start);
    }
  }

  // What the updater has recorded: hard calls may write.
  static redis::ConfigRecord config() {
    const CheckerOptions usual;
    redis::ConfigRecord record;
    record.key_prefix = usual.key_prefix;
    record.retention = usual.retention;
    record.null_user_ids = usual.null_user_ids;
    record.reservation_life_max = 15min;
    return record;
  }

  const std::string key_ = "fcap:{a user whose id is no short one}";
  const std::string bytes_ = std::string(300, 'b');
  const Store::Deadline deadline_ = std::chrono::steady_clock::now() + 60s;
  const std::string record_ = record_of("c1", 3);
  ScriptedServer server_{[this](std::size_t /*connection*/,
                                const ScriptedServer::Words& words) -> std::optional<std::string> {
    if (words[0] == "APPEND") return ":" + std::to_string(words[2].size()) + "\r\n";
    if (words[0].starts_with("PEXPIRE")) return ":1\r\n";
    if (words[0] == "TIME") {
      const auto seconds = to_ms(base::wall_now()) / 1'000;
      return redis::resp_list({redis::resp_text(std::to_string(seconds)), redis::resp_text("0")});
    }
    if (words[0] == "GET" && words[1] == "fcap:{u}") return redis::resp_text(record_);
    if (words[0] == "GET" && words[1] == "fcap:{silent}") return std::nullopt;
    if (words[0] == "GET" && words[1] == "fcap:!config") {
      return redis::resp_text(redis::encode_config(config()));
    }
    return redis::as_single_master(words);
  }};
};

TEST_P(RedisOutOfMemory, AReadCompletesOnce) {
  expect_each_completes_once(
      1, [&](Store& store, Outcomes& outcomes) { store.get(key_, deadline_, outcomes); });
  expect_each_completes_once(1, [&](Store& store, Outcomes& outcomes) {
    store.get_maybe_stale(key_, deadline_, outcomes);
  });
}

TEST_P(RedisOutOfMemory, AnAppendCompletesOnce) {
  expect_each_completes_once(1, [&](Store& store, Outcomes& outcomes) {
    store.append(key_, bytes_, kNow, deadline_, outcomes);
  });
}

TEST_P(RedisOutOfMemory, ANoteCompletesOnce) {
  expect_each_completes_once(1, [&](Store& store, Outcomes& outcomes) {
    store.append_note(key_, bytes_, kNow, deadline_, outcomes);
  });
}

TEST_P(RedisOutOfMemory, EachOfManyAppendsCompletesOnce) {
  std::vector<std::string> keys;
  std::vector<Store::Append> appends;
  for (int i = 0; i < 300; ++i) keys.push_back("fcap:{user " + std::to_string(i) + "}");
  for (const std::string& key : keys) {
    appends.push_back({.key = key, .bytes = "bytes", .expire_at = kNow, .known_bytes = {}});
  }
  expect_each_completes_once(appends.size(), [&](Store& store, Outcomes& outcomes) {
    store.append_all(appends, deadline_, outcomes);
  });
}

TEST_P(RedisOutOfMemory, AnExchangeCompletesOnce) {
  for (const bool is_creation : {true, false}) {
    Store::CompareAndSet change{.key = key_, .desired = bytes_, .expire_at = kNow};
    if (!is_creation) change.expected = bytes_;
    expect_each_completes_once(1, [&](Store& store, Outcomes& outcomes) {
      store.compare_and_set(change, deadline_, outcomes);
    });
  }
}

// One that is connected, knows what it may write, and has not been used yet.
std::unique_ptr<Checker> ready_checker(const RedisOptions& redis,
                                       std::function<Instant()> clock = {}) {
  CheckerOptions options = patient_options();
  options.redis = redis;
  options.deadline = 60s;
  options.clock = std::move(clock);
  auto made = Checker::create(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().text();
  std::unique_ptr<Checker> checker = std::move(made).value();
  checker->set_rules(rule_set({sliding_rule("r1", "c1", 3), sliding_rule("r2", "c2", 3)}));
  EXPECT_TRUE(checker->wait_ready(30s));
  EXPECT_TRUE(eventually([&] {
    const StoreHealth store = checker->health().store;
    return store.config_state == ConfigState::kAgrees && store.clock_difference;
  }));
  return checker;
}

// Calls body() with a ready Checker each time.
template <typename Body>
void with_each_allocation_failing(const RedisOptions& redis, const Body& body) {
  bool failed = true;
  for (std::ptrdiff_t left = 0; failed && !::testing::Test::HasFailure(); ++left) {
    SCOPED_TRACE("allocations that succeed: " + std::to_string(left));
    ASSERT_LT(left, 500);
    const std::unique_ptr<Checker> checker = ready_checker(redis, [] { return kNow; });
    failed = body(*checker, left);
    const Candidate capped[] = {{"c1"}};
    EXPECT_FALSE(checker->check("u", capped).verdicts[0].allowed);
  }
}

void expect_whole(const CheckResult& result, bool failed) {
  ASSERT_EQ(result.verdicts.size(), 2U);
  if (result.reason == Reason::kPassed) {
    EXPECT_FALSE(result.verdicts[0].allowed);
  } else {
    EXPECT_TRUE(failed);
    EXPECT_EQ(result.reason, Reason::kOverloaded);
  }
}

TEST_P(RedisOutOfMemory, ChecksHaveAllVerdicts) {
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  const CheckRequest users[] = {{"u", candidates}, {"u", candidates}};
  with_each_allocation_failing(options(Server::kAnswers),
                               [&](Checker& checker, std::ptrdiff_t left) {
                                 fail_allocations_of_this_thread(left, GetParam());
                                 const CheckResult result = checker.check("u", candidates);
                                 const bool failed = end_of_failing_allocations();
                                 expect_whole(result, failed);
                                 return failed;
                               });
  with_each_allocation_failing(options(Server::kAnswers), [&](Checker& checker,
                                                              std::ptrdiff_t left) {
    std::promise<CheckResult> answer;
    Checker::Callback callback = [&](CheckResult result) { answer.set_value(std::move(result)); };
    fail_allocations_of_this_thread(left, GetParam());
    checker.check_async("u", candidates, {}, std::move(callback));
    const bool failed = end_of_failing_allocations();
    expect_whole(answer.get_future().get(), failed);
    return failed;
  });
  with_each_allocation_failing(
      options(Server::kAnswers), [&](Checker& checker, std::ptrdiff_t left) {
        fail_allocations_of_this_thread(left, GetParam());
        const std::vector<CheckResult> results = checker.check_batch(users);
        const bool failed = end_of_failing_allocations();
        for (const CheckResult& result : results) expect_whole(result, failed);
        return failed;
      });
}

TEST_P(RedisOutOfMemory, HardCallsAreOverloaded) {
  const std::vector<std::string> ids = {"1", "2", "3"};
  bool failed = true;
  for (std::ptrdiff_t left = 0; failed && !HasFailure(); ++left) {
    SCOPED_TRACE("allocations that succeed: " + std::to_string(left));
    ASSERT_LT(left, 500);
    const std::unique_ptr<Checker> checker = ready_checker(options(Server::kAnswers));
    fail_allocations_of_this_thread(left, GetParam());
    const HardResult reserved = checker->hard({HardCall::kReserve, {"h", {"c1"}, "event"}});
    failed = end_of_failing_allocations();
    const bool done = reserved.reason == Reason::kDone;
    EXPECT_TRUE(done || (failed && reserved.reason == Reason::kOverloaded));
    EXPECT_EQ(reserved.allowed, done);
    EXPECT_FALSE(reserved.unknown);
    fail_allocations_of_this_thread(left, GetParam());
    const HardResult released = checker->hard({HardCall::kRelease, {"h", {"c1"}, "event"}});
    failed = end_of_failing_allocations() || failed;
    EXPECT_TRUE(released.reason == Reason::kDone ||
                (failed && released.reason == Reason::kOverloaded));
    EXPECT_EQ(checker->hard({HardCall::kReserve, {"h", {"c1"}, "event"}}).reason, Reason::kDone);
  }
}

TEST_P(RedisOutOfMemory, TheDestructorNeedsNone) {
  std::unique_ptr<Checker> checker = ready_checker(options(Server::kAnswers));
  const Candidate candidates[] = {{"c1"}};
  std::promise<Reason> answer;
  checker->check_async("silent", candidates, {},
                       [&](const CheckResult& result) { answer.set_value(result.reason); });
  fail_allocations_of_this_thread(0, GetParam());
  checker.reset();
  EXPECT_FALSE(end_of_failing_allocations());
  EXPECT_EQ(answer.get_future().get(), Reason::kShutdown);
}

TEST_P(RedisOutOfMemory, CreateGivesAStatus) {
  for (const Server server : {Server::kIsMissing, Server::kClusterIsMissing}) {
    bool failed = true;
    for (std::ptrdiff_t left = 0; failed && !HasFailure(); ++left) {
      SCOPED_TRACE("allocations that succeed: " + std::to_string(left));
      ASSERT_LT(left, 5'000);
      CheckerOptions checker_options = patient_options();
      checker_options.redis = options(server);
      fail_allocations_of_this_thread(left, GetParam());
      auto made = Checker::create(std::move(checker_options));
      failed = end_of_failing_allocations();
      EXPECT_EQ(made.ok(), !failed);
      if (!made.ok()) {
        EXPECT_EQ(made.status().code(), StatusCode::kInternal);
        EXPECT_TRUE(made.status().retryable());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OneOrAll, RedisOutOfMemory, ::testing::Values(std::ptrdiff_t{1}, kAll),
                         [](const auto& instance) { return instance.param == 1 ? "One" : "All"; });

}  // namespace redis_memory_test
}  // namespace fcap::checker_test
