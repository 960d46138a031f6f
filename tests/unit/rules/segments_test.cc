// Limits for members of segments, given by the caller, stored, or both.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace segments_test {

using namespace std::chrono_literals;

using Members = std::vector<std::pair<const char*, const char*>>;

std::shared_ptr<const SegmentSet> stored(const Members& members) {
  SegmentSetBuilder builder;
  for (const auto& [segment, user] : members) EXPECT_TRUE(builder.add(segment, user).ok());
  return std::move(builder).finish(1);
}

// At most 1 of c1 an hour, 3 for "vip", 2 for "press"; two have been shown.
class TwoShown : public Scene {
 public:
  TwoShown() {
    rule({.id = "all", .target = "c1", .limit = 1, .window = sliding(1h)});
    rule({.id = "vip", .target = "c1", .limit = 3, .window = sliding(1h), .segment = "vip"});
    rule({.id = "press", .target = "c1", .limit = 2, .window = sliding(1h), .segment = "press"});
    event("c1", 1000);
    event("c1", 2000);
  }
};

TEST(StoredSegments, AMembersLimitReplacesTheGeneralOne) {
  TwoShown scene;
  scene.stored(stored({{"vip", "u1"}}));
  scene.user("u1");
  EXPECT_TRUE(scene.check("c1", 3000).allowed);
  scene.user("u2");
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all");
  scene.user("");
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all");
}

TEST(StoredSegments, UniteWithTheCallers) {
  TwoShown scene;
  scene.stored(stored({{"vip", "u1"}}));
  scene.user("u1");
  scene.segments({"press"});
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "press") << "in both, and the smallest limit wins";
  scene.segments({"vip"});
  EXPECT_TRUE(scene.check("c1", 3000).allowed) << "told twice is no more than told once";
  scene.user("u2");
  EXPECT_TRUE(scene.check("c1", 3000).allowed) << "the caller's word is enough";
  scene.segments({});
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all") << "and is not remembered";
}

TEST(StoredSegments, OneThatIsNotStoredHasNoMembers) {
  TwoShown scene;
  scene.stored(stored({{"other", "u1"}}));
  scene.user("u1");
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all");
  scene.stored(nullptr);
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all");
}

TEST(StoredSegments, ANewSetHoldsFromTheNextCheckOn) {
  TwoShown scene;
  scene.user("u1");
  // Members move between sets whose names lie at other places.
  scene.stored(stored({{"vip", "u1"}}));
  EXPECT_TRUE(scene.check("c1", 3000).allowed);
  scene.stored(stored({{"a", "u1"}, {"press", "u1"}, {"vip", "u2"}}));
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "press");
  scene.stored(stored({{"a", "u1"}, {"b", "u1"}, {"vip", "u1"}}));
  EXPECT_TRUE(scene.check("c1", 3000).allowed);
}

TEST(StoredSegments, NewRulesAskForOtherSegments) {
  TwoShown scene;
  scene.stored(stored({{"aaa", "u1"}}));
  scene.user("u1");
  EXPECT_EQ(scene.check("c1", 3000).rule_id, "all");
  scene.rule({.id = "aaa", .target = "c1", .limit = 9, .window = sliding(1h), .segment = "aaa"});
  EXPECT_TRUE(scene.check("c1", 3000).allowed);
}

TEST(StoredSegments, NumbersAreTheSameUserOnlyIfSpelledTheSame) {
  TwoShown scene;
  scene.stored(stored({{"vip", "7"}, {"vip", "008"}, {"vip", "4294967305"}, {"vip", "Ünal"}}));
  for (const char* member : {"7", "008", "4294967305", "Ünal"}) {
    scene.user(member);
    EXPECT_TRUE(scene.check("c1", 3000).allowed) << member;
  }
  for (const char* other : {"07", "8", "9", "4294967303", "ünal", "Ünal ", ""}) {
    scene.user(other);
    EXPECT_FALSE(scene.check("c1", 3000).allowed) << other;
  }
}

TEST(StoredSegments, ExplainNamesTheReplacedRule) {
  TwoShown scene;
  scene.stored(stored({{"vip", "u1"}}));
  scene.user("u1");
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 3000);
  ASSERT_EQ(explanation.applicable.size(), 1U);
  EXPECT_EQ(explanation.applicable[0].rule->id, "vip");
  ASSERT_EQ(explanation.replaced.size(), 1U);
  EXPECT_EQ(explanation.replaced[0].replaced_by, "vip");
}

TEST(StoredSegments, EligibleAtForeseesARuleForMembersThatStarts) {
  Scene scene;
  scene.rule({.id = "all", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "vip",
              .target = "c1",
              .limit = 5,
              .window = sliding(1h),
              .segment = "vip",
              .start = instant_from_ms(60'000)});
  scene.event("c1", 1000);
  scene.stored(stored({{"vip", "u1"}}));
  scene.user("u1");
  EXPECT_EQ(eligible_ms(scene.check("c1", 2000)), 60'000);
  scene.user("u2");
  EXPECT_EQ(eligible_ms(scene.check("c1", 2000)), 3'601'000);
}

}  // namespace segments_test
}  // namespace fcap::rules
