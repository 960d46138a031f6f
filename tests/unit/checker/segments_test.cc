// A Checker with stored segments: given by the host, or read from a directory.
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checker/current_rules.h"
#include "fixtures.h"
#include "support/temporary_directory.h"

namespace fcap::checker_test {
namespace segments_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const SegmentSet> stored(
    const std::vector<std::pair<std::string, std::string>>& members, std::uint64_t version = 1) {
  SegmentSetBuilder builder;
  for (const auto& [segment, user] : members) EXPECT_TRUE(builder.add(segment, user).ok());
  return std::move(builder).finish(version);
}

// At most 1 of c1 a day; members of "vip" 5.
std::shared_ptr<const RuleSet> one_a_day_vips_five() {
  Rule vip = sliding_rule("vip", "c1", 5);
  vip.segment = "vip";
  return rule_set({sliding_rule("all", "c1", 1), vip});
}

class CheckSegments : public ::testing::Test {
 protected:
  static CheckerOptions logging(std::vector<std::string>& lines, std::mutex& mutex) {
    CheckerOptions options = patient_options();
    options.log = [&](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    };
    return options;
  }

  static void shown_once(ScriptedStore& store) {
    store.answer_at_once = StoreCode::kOk;
    store.records["fcap:{u1}"] = record_of("c1", 1);
    store.records["fcap:{u2}"] = record_of("c1", 1);
  }
  static bool allowed(Checker& checker, std::string_view user) {
    const Candidate candidates[] = {{"c1"}};
    return checker.check(user, candidates, kPatient).verdicts[0].allowed;
  }
};

TEST_F(CheckSegments, EveryFormOfACheckKnowsTheStoredMembers) {
  ScriptedChecker world;
  shown_once(*world.store);
  world.checker->set_rules(one_a_day_vips_five());
  world.checker->set_segments(stored({{"vip", "u1"}}));
  const Candidate candidates[] = {{"c1"}};
  EXPECT_TRUE(allowed(*world.checker, "u1"));
  EXPECT_FALSE(allowed(*world.checker, "u2"));

  const CheckRequest users[] = {{"u2", candidates}, {"u1", candidates}};
  const std::vector<CheckResult> results = world.checker->check_batch(users, kPatient);
  EXPECT_FALSE(results[0].verdicts[0].allowed);
  EXPECT_TRUE(results[1].verdicts[0].allowed);

  EXPECT_THAT(world.checker->first_allowed("u1", candidates, 1, kPatient).picked, ElementsAre(0U));
  EXPECT_THAT(world.checker->first_allowed("u2", candidates, 1, kPatient).picked, ElementsAre());

  std::mutex mutex;
  std::vector<bool> answers;
  std::string user = "u1";
  world.checker->check_async(user, candidates, kPatient, [&](const CheckResult& result) {
    const std::lock_guard lock(mutex);
    answers.push_back(result.verdicts[0].allowed);
  });
  user = "zz";  // what it was given must have been copied
  while (true) {
    const std::lock_guard lock(mutex);
    if (answers.size() == 1) break;
  }
  EXPECT_TRUE(answers[0]);
}

TEST_F(CheckSegments, ASwapHoldsFromTheNextCheckOnAndTheStatsTellOfIt) {
  ScriptedChecker world;
  shown_once(*world.store);
  world.checker->set_rules(one_a_day_vips_five());
  EXPECT_EQ(world.checker->segments(), nullptr);
  EXPECT_EQ(world.checker->stats().segments.version, 0U);
  const auto first = stored({{"vip", "u1"}, {"vip", "77"}}, 41);
  world.checker->set_segments(first);
  EXPECT_EQ(world.checker->segments(), first);
  EXPECT_TRUE(allowed(*world.checker, "u1"));
  CheckerStats stats = world.checker->stats();
  EXPECT_EQ(stats.segments.version, 41U);
  EXPECT_EQ(stats.segments.members, 2U);
  EXPECT_EQ(stats.segments.bytes, first->memory().bytes());
  EXPECT_EQ(stats.segments.reloads, 1U);
  world.checker->set_segments(stored({{"vip", "u2"}}, 42));
  EXPECT_FALSE(allowed(*world.checker, "u1"));
  EXPECT_TRUE(allowed(*world.checker, "u2"));
  world.checker->set_segments(nullptr);
  EXPECT_FALSE(allowed(*world.checker, "u2"));
  stats = world.checker->stats();
  EXPECT_EQ(stats.segments.version, 0U);
  EXPECT_EQ(stats.segments.members, 0U);
  EXPECT_EQ(stats.segments.reloads, 3U);
}

TEST_F(CheckSegments, ReplacedOnesAreLetGoEvenWhereAnAnswerIsKept) {
  ScriptedChecker world;
  shown_once(*world.store);
  world.checker->set_rules(one_a_day_vips_five());
  auto first = stored({{"vip", "u1"}});
  const std::weak_ptr<const SegmentSet> watched = first;
  world.checker->set_segments(std::move(first));
  const Candidate candidates[] = {{"c1"}};
  const CheckResult kept = world.checker->check("u1", candidates, kPatient);
  world.checker->set_segments(stored({}));
  expect_let_go(watched);
  EXPECT_NE(kept.rules, nullptr);
}

TEST_F(CheckSegments, ARememberedCapDoesNotOutliveASwap) {
  CheckerOptions options = patient_options();
  options.local.cached_caps_max = 100;
  ScriptedChecker world(std::move(options));
  shown_once(*world.store);
  world.checker->set_rules(one_a_day_vips_five());
  EXPECT_FALSE(allowed(*world.checker, "u1"));
  EXPECT_FALSE(allowed(*world.checker, "u1"));
  EXPECT_EQ(world.checker->stats().cache.checks, 1U);
  world.checker->set_segments(stored({{"vip", "u1"}}));
  EXPECT_TRUE(allowed(*world.checker, "u1"));
  EXPECT_FALSE(allowed(*world.checker, "u2"));
  EXPECT_FALSE(allowed(*world.checker, "u2"));
  EXPECT_EQ(world.checker->stats().cache.checks, 2U);
}

TEST(CurrentRules, EverySwapOfRulesOrSegmentsIsAnotherGeneration) {
  checker::CurrentRules current;
  checker::HeldRules held;
  current.refresh(held);
  EXPECT_EQ(held.segments, nullptr);
  std::vector<std::uint64_t> seen{held.generation};
  const auto expect_another = [&] {
    current.refresh(held);
    EXPECT_THAT(seen, ::testing::Not(Contains(held.generation)));
    seen.push_back(held.generation);
  };
  current.publish(rule_set({}));
  expect_another();
  current.publish(stored({}));
  expect_another();
  EXPECT_NE(held.rules, nullptr);
  EXPECT_NE(held.segments, nullptr);
  current.publish(std::shared_ptr<const SegmentSet>());
  expect_another();
  EXPECT_NE(held.rules, nullptr);
  EXPECT_EQ(held.segments, nullptr);
}

TEST_F(CheckSegments, OneThatARuleNamesAndNobodyStoresIsWarnedOfOnceASwap) {
  std::vector<std::string> lines;
  std::mutex mutex;
  ScriptedChecker world(logging(lines, mutex));
  world.checker->set_rules(one_a_day_vips_five());
  EXPECT_THAT(lines, ::testing::IsEmpty()) << "nothing is stored: only callers know";
  world.checker->set_segments(stored({{"press", "u1"}}));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("segment \"vip\", which rule \"vip\" names")));
  world.checker->set_segments(stored({{"vip", "u1"}}));
  EXPECT_EQ(lines.size(), 1U);
}

TEST_F(CheckSegments, OptionsThatNameTwoSourcesOrNoDatabaseAreRefused) {
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ScriptedStore>();
  options.segments.postgres = true;
  Result<std::unique_ptr<Checker>> made = Checker::create(options);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().text(), HasSubstr("segments.postgres needs"));
  options.rules.postgres = "host=127.0.0.1";
  options.segments.directory = "/nowhere";
  made = Checker::create(options);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().text(), HasSubstr("only one of them"));
}

TEST_F(CheckSegments, ADirectoryIsReadBeforeCreateReturnsAndAgainWhenItChanges) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("1"));
  std::filesystem::create_directory(directory.file("2"));
  std::ofstream(directory.file("1/vip.ids")) << "u1\n";
  std::ofstream(directory.file("2/vip.ids")) << "u2\n";
  std::filesystem::create_symlink("1", directory.file("current"));
  CheckerOptions options = patient_options();
  options.segments.directory = directory.file("current");
  options.rules.poll_interval = 1s;
  ScriptedChecker world(std::move(options));
  shown_once(*world.store);
  world.checker->set_rules(one_a_day_vips_five());
  EXPECT_TRUE(allowed(*world.checker, "u1"));
  EXPECT_FALSE(allowed(*world.checker, "u2"));
  std::filesystem::create_symlink("2", directory.file("next"));
  std::filesystem::rename(directory.file("next"), directory.file("current"));
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!allowed(*world.checker, "u2") && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(allowed(*world.checker, "u2"));
  EXPECT_FALSE(allowed(*world.checker, "u1"));
  // Counted once it has been handed out, so a moment later.
  while (world.checker->stats().segments.reloads < 2 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(world.checker->stats().segments.reloads, 2U);
}

TEST_F(CheckSegments, WithoutItsDirectoryACheckerStartsAndSaysSo) {
  std::vector<std::string> lines;
  std::mutex mutex;
  CheckerOptions options = logging(lines, mutex);
  options.segments.directory = "/nowhere/to/be/found";
  ScriptedChecker world(std::move(options));
  world.checker->set_rules(one_a_day_vips_five());
  shown_once(*world.store);
  EXPECT_FALSE(allowed(*world.checker, "u1"));
  EXPECT_GE(world.checker->stats().segments.reloads_failed, 1U);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(lines, Contains(HasSubstr("/nowhere/to/be/found")));
}

}  // namespace segments_test
}  // namespace fcap::checker_test
