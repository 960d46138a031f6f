#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.h"
#include "tests/support/seed.h"

namespace fcap::checker_test {
namespace deadline_test {

TEST(CheckDeadline, PassedAnswersTimeoutAndTheLateReplyReachesNobody) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->records["fcap:{slow}"] = record_of("c1", 5);
  const Candidate candidates[] = {{"c1"}};
  const CheckOptions hurried{.deadline = 1ms, .now = {}, .segments = {}};
  EXPECT_EQ(world.checker->check("slow", candidates, hurried).reason, Reason::kTimeout);

  // The late answer arrives while another user's check waits; that one gets its own.
  const auto late = world.store->take_held();
  ASSERT_EQ(late.size(), 1U);
  std::thread server([&] {
    const auto held = world.store->wait_for_held(1);
    world.store->answer(late[0], StoreCode::kOk);
    world.store->answer(held[0], StoreCode::kNotFound);
  });
  const CheckResult result = world.checker->check("quick", candidates, kPatient);
  server.join();
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kTimeout], 1U);
}

TEST(CheckDeadline, ZeroIsTakenAndAnswersAtOnce) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  const Candidate candidates[] = {{"c1"}};
  for (const auto deadline : {0us, -5us}) {
    const CheckOptions none{.deadline = deadline, .now = {}, .segments = {}};
    EXPECT_EQ(world.checker->check("u", candidates, none).reason, Reason::kTimeout);
  }
  for (const auto& held : world.store->take_held()) {
    world.store->answer(held, StoreCode::kTimeout);
  }
}

// Answers two of three reads; false where that was not in time, which then says nothing.
bool two_answers_come_in_time() {
  constexpr auto kDeadline = 200ms;
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  for (const char* user : {"a", "b", "c"}) {
    world.store->records["fcap:{" + std::string(user) + "}"] = record_of("c1", 1);
  }
  const Candidate candidates[] = {{"c1"}};
  const CheckRequest users[] = {{"a", candidates}, {"b", candidates}, {"c", candidates}};
  std::vector<ScriptedStore::Held> held;
  std::atomic<bool> over{false};
  bool in_time = false;
  const auto began = std::chrono::steady_clock::now();
  std::thread server([&] {
    while (held.size() < 3 && !over) {
      for (const auto& read : world.store->take_held()) held.push_back(read);
    }
    if (held.size() < 3) return;
    world.store->answer(held[0], StoreCode::kOk);
    world.store->answer(held[2], StoreCode::kOk);
    in_time = std::chrono::steady_clock::now() < began + kDeadline;
  });
  const auto results =
      world.checker->check_batch(users, {.deadline = kDeadline, .now = {}, .segments = {}});
  over = true;
  server.join();
  for (auto& read : world.store->take_held()) held.push_back(read);
  if (in_time) {
    EXPECT_EQ(results[0].verdicts[0].reason, Reason::kCapped);
    EXPECT_EQ(results[1].verdicts[0].reason, Reason::kTimeout);
    EXPECT_EQ(results[2].verdicts[0].reason, Reason::kCapped);
    world.store->answer(held[1], StoreCode::kOk);
  } else {
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (held.size() < 3 || i == 1) world.store->answer(held[i], StoreCode::kTimeout);
    }
  }
  return in_time;
}

TEST(CheckDeadline, BatchKeepsTheAnswersThatCameInTime) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  bool judged = false;
  while (!judged && std::chrono::steady_clock::now() < until) judged = two_answers_come_in_time();
  EXPECT_TRUE(judged);
}

TEST(CheckDeadline, BatchHasAtMostItsShareOfTheQueueUnderWay) {
  CheckerOptions options = patient_options();
  options.redis.queue_operations_max = 1'024;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  const Candidate candidates[] = {{"c1"}};
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back(std::to_string(i));
  std::vector<CheckRequest> users;
  users.reserve(names.size());
  for (const std::string& name : names) users.push_back({name, candidates});
  for (int i = 0; i < 1'000; i += 2) {
    world.store->records["fcap:{" + std::to_string(i) + "}"] = record_of("c1", 1);
  }
  std::size_t most = 0;
  std::thread server([&] {
    for (std::size_t answered = 0; answered < users.size();) {
      const auto held = world.store->take_held();
      most = std::max(most, held.size());
      // In an order of its own.
      for (auto read = held.rbegin(); read != held.rend(); ++read) {
        world.store->answer(*read, StoreCode::kOk);
      }
      answered += held.size();
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto results = world.checker->check_batch(users, kPatient);
  server.join();
  EXPECT_LE(most, 128U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].reason, Reason::kPassed);
    EXPECT_EQ(results[i].verdicts[0].allowed, i % 2 == 1) << i;
  }
}

TEST(CheckDeadline, BatchBeginsNoReadsWhenItIsOver) {
  CheckerOptions options = patient_options();
  options.redis.queue_operations_max = 512;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1), sliding_rule("r0", "c2", 0)}));
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  std::vector<CheckRequest> users(1'000, {"u", candidates});
  const auto results =
      world.checker->check_batch(users, {.deadline = 1ms, .now = {}, .segments = {}});
  ASSERT_EQ(results.size(), 1'000U);
  for (const CheckResult& result : results) {
    EXPECT_EQ(result.reason, Reason::kTimeout);
    ASSERT_EQ(result.verdicts.size(), 2U);
    EXPECT_TRUE(result.verdicts[0].allowed);
    EXPECT_FALSE(result.verdicts[1].allowed);
  }
  // An eighth of the queue; none at all where the machine was too slow for the first.
  EXPECT_LE(world.store->get_count, 64U);
  for (const auto& held : world.store->take_held()) {
    world.store->answer(held, StoreCode::kTimeout);
  }
}

// Every user's record holds as many events as the user's number, so an answer tells whose it is.
TEST(CheckDeadline, ManyThreadsWithRandomDelaysNeverMixAnswers) {
  const auto seed = static_cast<std::uint32_t>(test_seed());
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  constexpr std::uint32_t kUsers = 40;
  constexpr int kThreads = 8;
  constexpr int kChecksEach = 300;
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  for (std::uint32_t user = 1; user <= kUsers; ++user) {
    world.store->records["fcap:{" + std::to_string(user) + "}"] = record_of("c1", user);
  }
  std::atomic<bool> done{false};
  std::thread server([&] {
    std::mt19937 random(seed);
    std::vector<ScriptedStore::Held> waiting;
    while (!done || !waiting.empty()) {
      for (auto& held : world.store->take_held()) waiting.push_back(held);
      std::shuffle(waiting.begin(), waiting.end(), random);
      for (std::size_t left = waiting.empty() ? 0 : 1 + random() % waiting.size(); left > 0;
           --left) {
        world.store->answer(waiting.back(), StoreCode::kOk);
        waiting.pop_back();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    }
  });
  std::atomic<int> judged{0};
  std::atomic<int> timeouts{0};
  std::vector<std::thread> callers;
  callers.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    callers.emplace_back([&, thread] {
      std::mt19937 random(seed + static_cast<std::uint32_t>(thread) + 1);
      const Candidate candidates[] = {{"c1"}};
      for (int i = 0; i < kChecksEach; ++i) {
        const auto user = static_cast<std::uint32_t>(1 + random() % kUsers);
        CheckOptions options = kPatient;  // a few, so that some are judged on any machine
        if (i % 8 != 0) options.deadline = std::chrono::microseconds(random() % 600);
        const CheckResult result = world.checker->check(std::to_string(user), candidates, options);
        if (result.reason == Reason::kTimeout) {
          ++timeouts;
        } else {
          EXPECT_EQ(result.verdicts[0].count, user);
          ++judged;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  done = true;
  server.join();
  // A store answers every read in the end, also those whose callers left.
  for (const auto& held : world.store->take_held()) world.store->answer(held, StoreCode::kTimeout);
  EXPECT_EQ(judged + timeouts, kThreads * kChecksEach);
  EXPECT_GT(judged, 0) << "no answer was compared: nothing was tested";
  EXPECT_GT(timeouts, 0) << "no check was given up: nothing was tested";
}

TEST(CheckRules, AreSwappedUnderLoadWithoutAWrongVerdict) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 4);
  // Versions and limits go together: version n caps exactly when its limit is at most 4.
  std::vector<std::shared_ptr<const RuleSet>> sets;
  for (std::uint32_t limit = 1; limit <= 8; ++limit) {
    sets.push_back(rule_set({sliding_rule("r" + std::to_string(limit), "c1", limit)}, {}, limit));
  }
  world.checker->set_rules(sets[0]);
  std::atomic<bool> done{false};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&] {
      const Candidate candidates[] = {{"c1"}};
      while (!done) {
        const CheckResult result = world.checker->check("u", candidates);
        const std::uint64_t limit = result.rules->version();
        EXPECT_EQ(result.verdicts[0].allowed, limit > 4);
        if (limit <= 4) {
          EXPECT_EQ(result.verdicts[0].rule_id, "r" + std::to_string(limit));
        }
      }
    });
  }
  for (int i = 0; i < 400; ++i) {
    world.checker->set_rules(sets[static_cast<std::size_t>(i) % sets.size()]);
    std::this_thread::sleep_for(100us);
  }
  done = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace deadline_test
}  // namespace fcap::checker_test
