#include "rules/keep_needed.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace keep_needed_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

std::vector<std::int64_t> kept_times(Scene& scene) {
  std::vector<bool> keep(scene.ledger().size());
  KeepNeeded(scene.rules()).mark_needed(scene.ledger(), keep);
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) times.push_back(to_ms(scene.ledger().times()[i]));
  }
  std::sort(times.begin(), times.end());
  return times;
}

using Times = std::vector<std::int64_t>;

TEST(KeepNeeded, NewestLimitPlusOneOfACampaignThatARuleCounts) {
  Scene scene;
  scene.rule({.id = "a", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "b", .target = "c1", .limit = 2, .window = sliding(24h)});
  for (int i = 0; i < 6; ++i) scene.event("c1", i);
  for (int i = 10; i < 16; ++i) scene.event("c2", i);
  EXPECT_EQ(kept_times(scene), (Times{3, 4, 5}));
}

TEST(KeepNeeded, OnlyTheTypeThatIsCounted) {
  Scene scene;
  scene.rule({.id = "a",
              .target = "c1",
              .event_type = EventType::kClick,
              .limit = 1,
              .window = sliding(1h)});
  for (int i = 0; i < 3; ++i) scene.event("c1", i);
  for (int i = 10; i < 13; ++i) scene.event("c1", i, "", EventType::kClick);
  EXPECT_EQ(kept_times(scene), (Times{11, 12}));
}

TEST(KeepNeeded, AdvertiserGroupCreativeAndUserAcrossCampaigns) {
  Scene scene;
  scene.campaign({.id = "c1", .advertiser_id = "a1", .groups = {"g1"}});
  scene.campaign({.id = "c2", .advertiser_id = "a1"});
  scene.rule({.id = "adv",
              .scope = Scope::kAdvertiser,
              .target = "a1",
              .limit = 1,
              .window = sliding(1h)});
  for (int i = 0; i < 10; ++i) scene.event(i % 2 == 0 ? "c1" : "c2", i, i < 5 ? "k1" : "");
  EXPECT_EQ(kept_times(scene), (Times{8, 9}));
  scene.rule(
      {.id = "cr", .scope = Scope::kCreative, .target = "k1", .limit = 0, .window = lifetime()});
  EXPECT_EQ(kept_times(scene), (Times{4, 8, 9}));
  scene.rule({.id = "g", .scope = Scope::kGroup, .target = "g1", .limit = 2, .window = lifetime()});
  EXPECT_EQ(kept_times(scene), (Times{4, 6, 8, 9}));
  scene.rule({.id = "u", .scope = Scope::kUser, .limit = 4, .window = lifetime()});
  EXPECT_EQ(kept_times(scene), (Times{4, 5, 6, 7, 8, 9}));
}

TEST(KeepNeeded, DefaultsAndRulesOfOtherTimesAndSegmentsCountToo) {
  Scene scene;
  scene.rule({.id = "d", .target = "*", .limit = 0, .window = sliding(1h)});
  scene.rule({.id = "s",
              .target = "c1",
              .limit = 1,
              .window = sliding(1h),
              .segment = "vip",
              .start = instant_from_ms(1'000'000)});
  for (int i = 0; i < 3; ++i) scene.event("c1", i);
  for (int i = 10; i < 13; ++i) scene.event("c2", i);
  EXPECT_EQ(kept_times(scene), (Times{1, 2, 12}));
}

TEST(KeepNeeded, UnlimitedRulesNeedNothing) {
  Scene scene;
  scene.rule({.id = "n", .target = "c1", .limit = std::nullopt, .window = sliding(1h)});
  scene.event("c1", 1);
  EXPECT_EQ(kept_times(scene), Times{});
}

// The size-trimmed record of a busy user, through the real compaction.
class TrimmedRecord : public ::testing::Test {
 protected:
  void trim(Scene& scene, std::size_t record_bytes_max) {
    const KeepNeeded keep(scene.rules());
    const ledger::Compacted compacted = ledger::compact(
        scene.ledger(), {},
        {.trim_now = instant_from_ms(0), .record_bytes_max = record_bytes_max, .keep = &keep});
    EXPECT_GT(compacted.dropped_entries, 0U);
    ASSERT_EQ(scene.ledger().decode(compacted.record), ledger::DecodeCode::kOk);
    ASSERT_TRUE(scene.ledger().complete_since().has_value());
  }
};

TEST_F(TrimmedRecord, StillCapsByASlidingRuleAndSaysThatCountsMayBeTooLow) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 3, .window = sliding(24h)});
  for (int i = 0; i < 5; ++i) scene.event("c1", 1000 + i);
  for (int i = 0; i < 5000; ++i) scene.event("noise", 100'000 + i);
  const Verdict whole = scene.check("c1", 200'000);
  EXPECT_TRUE(whole.complete);
  trim(scene, 1024);
  const Verdict verdict = scene.check("c1", 200'000);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_FALSE(verdict.complete);
  EXPECT_EQ(verdict.eligible_at, whole.eligible_at);
  EXPECT_EQ(verdict.count, 4U);
  EXPECT_FALSE(scene.explain(Candidate{"c1"}, 200'000).applicable[0].complete);
}

TEST_F(TrimmedRecord, IsCompleteForWindowsThatDoNotReachBackToWhatWasDropped) {
  Scene scene;
  scene.rule({.id = "short", .target = "c1", .limit = 3, .window = sliding(1s)});
  scene.rule({.id = "zero", .target = "c2", .limit = 0, .window = lifetime()});
  scene.rule({.id = "fixed", .target = "c3", .limit = 9, .window = fixed(1s)});
  scene.rule({.id = "shadow",
              .target = "c1",
              .limit = 9,
              .window = lifetime(),
              .mode = Rule::Mode::kShadow});
  for (int i = 0; i < 5000; ++i) scene.event("noise", 100'000 + i);
  trim(scene, 1024);
  const std::int64_t since_ms = to_ms(*scene.ledger().complete_since());
  EXPECT_TRUE(scene.check("c1", since_ms + 999).complete);
  EXPECT_FALSE(scene.check("c1", since_ms + 998).complete);
  EXPECT_TRUE(scene.check("c2", since_ms).complete);
  EXPECT_FALSE(scene.check("c3", since_ms + 2000).complete);
  EXPECT_TRUE(scene.check("no-rules", since_ms).complete);
  // Once what was dropped is out of the retention, nothing is missing.
  const std::int64_t retention_ms = scene.rules()->retention().count();
  EXPECT_FALSE(scene.check("c3", since_ms - 2 + retention_ms).complete);
  EXPECT_TRUE(scene.check("c3", since_ms - 1 + retention_ms).complete);
}

TEST(MissingBefore, IsIncompleteForWindowsThatReachBackThere) {
  using std::chrono::hours;
  Scene scene;
  scene.rule({.id = "day", .target = "c1", .limit = 2, .window = sliding(hours{24})});
  scene.rule({.id = "hour", .target = "c2", .limit = 2, .window = sliding(hours{1})});
  scene.rule({.id = "never", .target = "c3", .limit = 0, .window = sliding(hours{24})});
  scene.rule({.id = "ever", .target = "c4", .limit = 2, .window = lifetime()});
  scene.rule({.id = "free", .target = "c5", .limit = std::nullopt, .window = sliding(hours{24})});
  constexpr std::int64_t kNow = 1'700'000'000'000;
  constexpr std::int64_t kHour = 3'600'000;
  scene.event("c1", kNow - 1);
  EXPECT_TRUE(scene.check("c1", kNow).complete);
  scene.missing_before(instant_from_ms(kNow - 2 * kHour));
  EXPECT_FALSE(scene.check("c1", kNow).complete);
  EXPECT_TRUE(scene.check("c1", kNow).allowed);
  EXPECT_TRUE(scene.check("c2", kNow).complete);
  EXPECT_TRUE(scene.check("c3", kNow).complete) << "no event could change it";
  EXPECT_FALSE(scene.check("c4", kNow).complete);
  EXPECT_TRUE(scene.check("c5", kNow).complete);
  EXPECT_FALSE(scene.explain(Candidate{"c1"}, kNow).applicable[0].complete);
  EXPECT_TRUE(scene.explain(Candidate{"c2"}, kNow).applicable[0].complete);
  scene.event("c1", kNow - 2);
  const Verdict capped = scene.check("c1", kNow);
  EXPECT_FALSE(capped.allowed);
  EXPECT_FALSE(capped.complete);
  // The first millisecond that the window counts is the first that is known.
  EXPECT_TRUE(scene.check("c1", kNow + 22 * kHour - 1).complete);
  EXPECT_FALSE(scene.check("c1", kNow + 22 * kHour - 2).complete);
  scene.missing_before(instant_from_ms(kNow - 40 * 24 * kHour));
  EXPECT_TRUE(scene.check("c4", kNow).complete) << "longer ago than anything is kept";
  scene.missing_before(std::nullopt);
  EXPECT_TRUE(scene.check("c4", kNow).complete);
}

}  // namespace keep_needed_test
}  // namespace fcap::rules
