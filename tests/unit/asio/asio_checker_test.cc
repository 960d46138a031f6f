#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <gtest/gtest.h>

#include <fcap/asio.h>

#include "tests/support/patient_options.h"
#include "unit/checker/holding_store.h"

namespace fcap {
namespace {

using namespace std::chrono_literals;

constexpr Candidate kNever[] = {{"never"}, {"other"}};

// A Checker over an empty store in memory, where campaign "never" is shown to nobody.
class AsioCheckerTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Checker> make_checker() {
    CheckerOptions options = patient_options();
    options.store = make_memory_store();
    std::unique_ptr<Checker> checker = std::move(Checker::create(std::move(options)).value());
    Rule never;
    never.id = "never";
    never.target = "never";
    never.limit = 0;
    never.window.length = 24h;
    Rule daily = never;
    daily.id = "daily";
    daily.target = "other";
    daily.limit = 3;
    RuleSetSpec spec;
    spec.version = 1;
    spec.rules = {never, daily};
    checker->set_rules(RuleSet::build(std::move(spec), {}).value());
    return checker;
  }

  std::unique_ptr<Checker> checker_ = make_checker();
  asio::io_context loop_;
  AsioChecker<asio::io_context::executor_type> on_loop_{loop_.get_executor(), *checker_};
};

using LoopChecker = AsioChecker<asio::io_context::executor_type>;

asio::awaitable<void> ask_often(LoopChecker& checker, std::vector<bool>& allowed,
                                std::thread::id& ran_on) {
  for (int i = 0; i < 100; ++i) {
    const CheckResult result = co_await checker.check("u1", kNever, asio::use_awaitable);
    for (const Verdict& verdict : result.verdicts) allowed.push_back(verdict.allowed);
  }
  ran_on = std::this_thread::get_id();
}

TEST_F(AsioCheckerTest, ACoroutineAwaitsItsAnswerOnItsOwnLoop) {
  std::vector<bool> allowed;
  std::thread::id ran_on;
  asio::co_spawn(loop_, ask_often(on_loop_, allowed, ran_on), asio::detached);
  loop_.run();
  ASSERT_EQ(allowed.size(), 200U);
  for (std::size_t i = 0; i < allowed.size(); ++i) EXPECT_EQ(allowed[i], i % 2 == 1);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_F(AsioCheckerTest, AHandlerThatCannotBeCopiedRunsOnTheLoopAndNotInsideTheCall) {
  auto answers = std::make_unique<int>(0);
  int* const count = answers.get();
  const CheckOptions options{.deadline = 1s};
  on_loop_.check("u1", kNever, options, [answers = std::move(answers)](const CheckResult& result) {
    EXPECT_EQ(result.verdicts.size(), 2U);
    ++*answers;
    // Destroyed with the handler; the loop has nothing else to do.
  });
  EXPECT_EQ(*count, 0);
  EXPECT_EQ(loop_.run(), 1U);
}

TEST_F(AsioCheckerTest, AnAnswerThatIsKnownAtOnceComesThroughTheLoopToo) {
  bool answered = false;
  on_loop_.check("", kNever, [&](const CheckResult& result) {
    EXPECT_EQ(result.reason, Reason::kNoUser);
    answered = true;
  });
  EXPECT_FALSE(answered);
  loop_.run();
  EXPECT_TRUE(answered);
}

TEST_F(AsioCheckerTest, AFutureGetsItsAnswerFromTheThreadThatRunsTheLoop) {
  std::future<CheckResult> future = on_loop_.check("u1", kNever, asio::use_future);
  std::thread running([&] { loop_.run(); });
  EXPECT_FALSE(future.get().verdicts[0].allowed);
  running.join();
}

asio::awaitable<void> reserve_and_release(LoopChecker& checker, std::vector<Reason>& ended) {
  const HardOptions options{.deadline = 30s};
  const auto reserve = [&](std::string_view id) {
    return checker.hard(HardRequest{HardCall::kReserve, {"u1", {"other"}, id}}, options,
                        asio::use_awaitable);
  };
  ended.push_back((co_await reserve("a")).reason);
  ended.push_back((co_await reserve("a")).reason);
  ended.push_back((co_await checker.hard(HardRequest{HardCall::kRelease, {"u1", {"other"}, "a"}},
                                         options, asio::use_awaitable))
                      .reason);
  ended.push_back((co_await reserve("a")).reason);
  ended.push_back((co_await checker.hard(HardRequest{HardCall::kRecord, {"u1", {"other"}, "b"}},
                                         options, asio::use_awaitable))
                      .reason);
  const std::string_view ids[] = {"c"};
  const PagePicks picks = co_await checker.pick({Promise::kReserved, "u1", kNever, ids},
                                                {.deadline = 30s}, asio::use_awaitable);
  ended.push_back(picks.picks.at(0).candidate == 1U ? picks.reason : Reason::kInvalid);
}

TEST_F(AsioCheckerTest, ACoroutineReservesReleasesAndRecords) {
  std::vector<Reason> ended;
  asio::co_spawn(loop_, reserve_and_release(on_loop_, ended), asio::detached);
  loop_.run();
  EXPECT_EQ(ended, (std::vector{Reason::kDone, Reason::kRepeated, Reason::kDone, Reason::kReleased,
                                Reason::kDone, Reason::kDone}));
}

asio::awaitable<void> pick_page(LoopChecker& checker, PagePicks& ended) {
  const std::string_view ids[] = {"s1", "s2"};
  ended = co_await checker.pick({Promise::kShared, "u2", kNever, ids}, {}, asio::use_awaitable);
}

TEST_F(AsioCheckerTest, ACoroutinePicksAPage) {
  PagePicks ended;
  asio::co_spawn(loop_, pick_page(on_loop_, ended), asio::detached);
  loop_.run();
  EXPECT_EQ(ended.reason, Reason::kDone);
  EXPECT_EQ(ended.picks.at(0).candidate, 1U);
  EXPECT_FALSE(ended.picks.at(1).candidate.has_value());
}

// A loop that ends while checks are under way, as after stop(): what waits for them is destroyed
// with it, and what the store answers later reaches nobody.
class EndingLoopTest : public ::testing::Test {
 protected:
  using Loop = asio::io_context;

  EndingLoopTest() {
    CheckerOptions options;
    options.store = store_;
    options.deadline = 60s;
    checker_ = std::move(Checker::create(std::move(options)).value());
    Rule daily;
    daily.id = "daily";
    daily.target = "other";
    daily.limit = 3;
    daily.window.length = 24h;
    checker_->set_rules(RuleSet::build({.version = 1, .rules = {daily}}, {}).value());
  }

  // A handler that lives until it is destroyed, which the test sees.
  auto handler() {
    return [held = witness_](const auto&) { ADD_FAILURE() << "its loop is gone"; };
  }
  [[nodiscard]] bool any_handler_left() const { return witness_.use_count() > 1; }

  std::shared_ptr<int> witness_ = std::make_shared<int>();
  std::shared_ptr<checker_test::HoldingStore> store_ =
      std::make_shared<checker_test::HoldingStore>();
  std::unique_ptr<Checker> checker_;
};

TEST_F(EndingLoopTest, TakesWhatWaitsForAnswersWithIt) {
  const std::string_view ids[] = {"a"};
  {
    Loop loop;
    AsioChecker on_loop(loop.get_executor(), *checker_);
    on_loop.check("u1", kNever, handler());
    on_loop.hard(HardRequest{HardCall::kReserve, {"u1", {"other"}, "a"}}, {}, handler());
    on_loop.hard(HardRequest{HardCall::kRelease, {"u1", {"other"}, "a"}}, {}, handler());
    on_loop.hard(HardRequest{HardCall::kRecord, {"u1", {"other"}, "a"}}, {}, handler());
    on_loop.pick({Promise::kShared, "u1", kNever, ids}, {}, handler());
    on_loop.pick({Promise::kReserved, "u1", kNever, ids}, {}, handler());
    // On a strand, and through an executor whose type is not known.
    const auto strand = asio::make_strand(loop);
    on_loop.check("u2", kNever, asio::bind_executor(strand, handler()));
    const asio::any_io_executor any = strand;
    AsioChecker(any, *checker_).check("u3", kNever, handler());
    EXPECT_TRUE(any_handler_left());
  }
  EXPECT_FALSE(any_handler_left());
  for (int i = 0; i < 8; ++i) store_->take().complete({.code = StoreCode::kUnavailable});
}

asio::awaitable<void> ask_and_keep(LoopChecker& checker,
                                   [[maybe_unused]] std::shared_ptr<int> held) {
  co_await checker.check("u1", kNever, asio::use_awaitable);
  ADD_FAILURE() << "its loop is gone";
}

TEST_F(EndingLoopTest, TakesACoroutineWithIt) {
  {
    Loop loop;
    LoopChecker on_loop(loop.get_executor(), *checker_);
    asio::co_spawn(loop, ask_and_keep(on_loop, witness_), asio::detached);
    loop.poll();
    EXPECT_TRUE(any_handler_left());
  }
  EXPECT_FALSE(any_handler_left());
  store_->take().complete({.code = StoreCode::kNotFound});
}

TEST_F(EndingLoopTest, MayEndBesideAnswersThatArrive) {
  for (int round = 0; round < 200; ++round) {
    auto loop = std::make_unique<Loop>();
    {
      AsioChecker on_loop(loop->get_executor(), *checker_);
      for (int i = 0; i < 8; ++i) {
        on_loop.check("u1", kNever, [held = witness_](const CheckResult&) {});
      }
    }
    std::thread answering([&] {
      for (int i = 0; i < 8; ++i) store_->take().complete({.code = StoreCode::kNotFound});
    });
    for (int i = 0; i < round % 7; ++i) std::this_thread::yield();
    loop.reset();
    EXPECT_FALSE(any_handler_left());
    answering.join();
  }
}

TEST_F(EndingLoopTest, MayOutliveItsChecker) {
  Loop loop;
  int answers = 0;
  AsioChecker on_loop(loop.get_executor(), *checker_);
  on_loop.check("u1", kNever, [&](const CheckResult& result) {
    EXPECT_EQ(result.reason, Reason::kShutdown);
    ++answers;
  });
  checker_.reset();
  EXPECT_EQ(answers, 0);
  loop.run();
  EXPECT_EQ(answers, 1);
  store_->take().complete({.code = StoreCode::kNotFound});
}

}  // namespace
}  // namespace fcap
