// The life of a rule through the real path: rows change in PostgreSQL, and what Redis already holds
// is judged by the new rule at the next refresh, without a single new event.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/time_text.h"
#include "support/whole_path_test.h"

namespace fcap {
namespace rule_life_path_test {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::wait_until;

// All tests share the servers and one Checker, and have users, campaigns and rules of their own.
class RuleLife : public testing::WholePathTest {
 protected:
  static void SetUpTestSuite() {
    WholePathTest::SetUpTestSuite();
    if (!servers) return;
    // So that no test empties the rule set or more than halves it, which would be refused.
    for (int i = 0; i < 20; ++i) {
      sql("INSERT INTO campaigns VALUES ('other" + std::to_string(i) + "', 'others', 1, 60)");
    }
    shared_checker = make_checker(true, hours{1});
  }
  static void TearDownTestSuite() {
    shared_checker.reset();
    WholePathTest::TearDownTestSuite();
  }

  void SetUp() override {
    WholePathTest::SetUp();
    name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  static std::unique_ptr<Checker> make_checker(bool listen, milliseconds poll_interval) {
    CheckerOptions options;
    options.redis.addresses = {servers->redis.address()};
    options.rules.postgres = servers->conninfo;
    options.rules.listen = listen;
    options.rules.poll_interval = poll_interval;
    options.deadline = std::chrono::seconds{30};
    auto made = Checker::create(std::move(options));
    if (!made.ok()) throw std::runtime_error(made.status().text());
    return std::move(made).value();
  }

  static void sql(const std::string& statements) {
    servers->postgres.sql(servers->conninfo, statements);
  }

  // A campaign of this test; its advertiser is `advertiser` of this test.
  void add_campaign(const std::string& campaign, const std::string& cap,
                    const std::string& advertiser = "a") {
    sql("INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds) VALUES ('" +
        own(campaign) + "', '" + own(advertiser) + "', " + cap + ")");
  }

  // An impression of this test's user, so long before base, counted in Redis.
  void record(const std::string& campaign, std::initializer_list<milliseconds> ages) {
    for (const milliseconds age : ages) {
      servers->produce({name_, own(campaign), "i" + std::to_string(next_event++), base - age});
    }
    ASSERT_TRUE(servers->drain()) << servers->updater_log();
  }

  // Changes rows, and waits until the Checker uses them.
  static void change(const std::string& statements) {
    sql(statements);
    await_rules();
  }
  static void await_rules() { await_rules(*shared_checker); }
  static void await_rules(const Checker& checker) {
    const std::uint64_t version = std::stoull(
        servers->postgres.value(servers->conninfo, "SELECT version FROM rule_set_version"));
    ASSERT_TRUE(wait_until([&] { return checker.rules()->version() == version; }));
  }

  Verdict ask(const std::string& campaign, milliseconds later = milliseconds{0}) {
    return ask(campaign, later, *shared_checker);
  }
  Verdict ask(const std::string& campaign, milliseconds later, Checker& checker) {
    const std::string id = own(campaign);
    const Candidate candidates[] = {{id}};
    last_ = checker.check(name_, candidates, {.now = base + later});
    EXPECT_EQ(last_.verdicts[0].allowed ? Reason::kPassed : Reason::kCapped,
              last_.verdicts[0].reason);
    return last_.verdicts[0];
  }

  void expect_capped(const Verdict& verdict, const std::string& rule, std::uint32_t count,
                     std::uint32_t limit, milliseconds eligible_after) {
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.rule_id, rule);
    EXPECT_EQ(verdict.count, count);
    EXPECT_EQ(verdict.limit, limit);
    ASSERT_TRUE(verdict.eligible_at);
    EXPECT_EQ(to_ms(*verdict.eligible_at), to_ms(base + eligible_after));
  }

  [[nodiscard]] std::string own(const std::string& id) const { return name_ + "-" + id; }
  // The same in quotes.
  [[nodiscard]] std::string row(const std::string& id) const { return "'" + own(id) + "'"; }
  [[nodiscard]] std::string campaign_rule(const std::string& id) const {
    return "campaign:" + own(id);
  }
  // An instant as PostgreSQL reads it.
  [[nodiscard]] std::string at(milliseconds later) const {
    return "'" + base::format_instant(base + later) + "'";
  }

  static inline std::unique_ptr<Checker> shared_checker;
  static inline int next_event = 0;
  // Yesterday noon in UTC: every window of these tests lies in the past, at a known place in its
  // day.
  static inline const Instant base =
      std::chrono::floor<days>(std::chrono::system_clock::now()) - hours{12};
  std::string name_;
  CheckResult last_;
};

TEST_F(RuleLife, LoosenedCapLetsPassAndTightenedCapCountsWhatWasShownBefore) {
  add_campaign("c", "3, 86400");
  record("c", {hours{30}, hours{20}, hours{2}, hours{1}});
  await_rules();
  expect_capped(ask("c"), campaign_rule("c"), 3, 3, hours{4});
  change("UPDATE campaigns SET cap_limit = 4 WHERE id = " + row("c"));
  EXPECT_TRUE(ask("c").allowed);
  change("UPDATE campaigns SET cap_limit = 2 WHERE id = " + row("c"));
  expect_capped(ask("c"), campaign_rule("c"), 3, 2, hours{22});
  change("UPDATE campaigns SET cap_limit = 0 WHERE id = " + row("c"));
  EXPECT_FALSE(ask("c").allowed);
  EXPECT_FALSE(ask("c").eligible_at);
}

TEST_F(RuleLife, PeriodChangedFromDailyToWeeklyCountsTheWeekThatIsRecorded) {
  add_campaign("c", "4, 86400");
  record("c", {days{6}, hours{30}, hours{20}, hours{1}});
  await_rules();
  EXPECT_TRUE(ask("c").allowed);
  change("UPDATE campaigns SET window_seconds = 604800 WHERE id = " + row("c"));
  expect_capped(ask("c"), campaign_rule("c"), 4, 4, days{1});
  change("UPDATE campaigns SET window_seconds = 7200 WHERE id = " + row("c"));
  EXPECT_TRUE(ask("c").allowed);
}

TEST_F(RuleLife, KindOfWindowChangesOverTheSameHistory) {
  add_campaign("c", "NULL, NULL");
  record("c", {hours{20}, hours{13}, hours{11}, hours{1}});
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds) "
      "VALUES (" +
      row("r") + ", 'campaign', " + row("c") + ", 3, 'sliding', 86400)");
  expect_capped(ask("c"), own("r"), 4, 3, hours{11});  // 4 of 3: until the second is a day old
  change(
      "UPDATE cap_rules SET window_kind = 'calendar', window_seconds = NULL, "
      "calendar_unit = 'day', cap_limit = 2 WHERE id = " +
      row("r"));
  expect_capped(ask("c"), own("r"), 2, 2, hours{12});  // 01:00 and 11:00, until midnight
  change("UPDATE cap_rules SET time_zone = 'Etc/GMT-3' WHERE id = " + row("r"));
  expect_capped(ask("c"), own("r"), 3, 2, hours{9});  // its day began at 21:00 UTC
  change(
      "UPDATE cap_rules SET window_kind = 'fixed', calendar_unit = NULL, time_zone = NULL, "
      "window_seconds = 28800 WHERE id = " +
      row("r"));
  EXPECT_TRUE(ask("c").allowed);  // opened 20 h, 11 h and 1 h ago: one in the open one
  change("UPDATE cap_rules SET cap_limit = 1 WHERE id = " + row("r"));
  expect_capped(ask("c"), own("r"), 1, 1, hours{7});
  change(
      "UPDATE cap_rules SET window_kind = 'lifetime', window_seconds = NULL, cap_limit = 4 "
      "WHERE id = " +
      row("r"));
  expect_capped(ask("c"), own("r"), 4, 4, days{32} - hours{20});
}

TEST_F(RuleLife, TwiceTheLimitAroundMidnightPassesACalendarCapAndNoSlidingOne) {
  constexpr hours kMidnight{12};  // so long before base
  add_campaign("c", "NULL, NULL");
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, calendar_unit) "
      "VALUES (" +
      row("r") + ", 'campaign', " + row("c") + ", 3, 'calendar', 'day')");
  record("c", {kMidnight + milliseconds{2'000}, kMidnight + milliseconds{1'000},
               kMidnight + milliseconds{1}});
  expect_capped(ask("c", -kMidnight - milliseconds{1}), own("r"), 3, 3, -kMidnight);
  EXPECT_TRUE(ask("c", -kMidnight).allowed);
  record("c", {kMidnight, kMidnight - milliseconds{1}});
  EXPECT_TRUE(ask("c", milliseconds{2'000} - kMidnight).allowed);
  record("c", {kMidnight - milliseconds{2'000}});
  expect_capped(ask("c", milliseconds{2'000} - kMidnight), own("r"), 3, 3, hours{24} - kMidnight);
  change(
      "UPDATE cap_rules SET window_kind = 'sliding', calendar_unit = NULL, window_seconds = 86400 "
      "WHERE id = " +
      row("r"));
  expect_capped(ask("c", milliseconds{2'000} - kMidnight), own("r"), 6, 3, hours{24} - kMidnight);
}

TEST_F(RuleLife, DeletedCapNoLongerCapsAndOneThatComesBackCountsThePast) {
  add_campaign("c", "2, 86400");
  record("c", {hours{3}, hours{2}});
  await_rules();
  EXPECT_FALSE(ask("c").allowed);
  change("UPDATE campaigns SET cap_limit = NULL WHERE id = " + row("c"));
  EXPECT_TRUE(ask("c").allowed);
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds) "
      "VALUES (" +
      row("r") + ", 'campaign', " + row("c") + ", 1, 'sliding', 86400)");
  expect_capped(ask("c"), own("r"), 2, 1, hours{22});
  change("UPDATE cap_rules SET enabled = false WHERE id = " + row("r"));
  EXPECT_TRUE(ask("c").allowed);
  change("UPDATE cap_rules SET enabled = true WHERE id = " + row("r"));
  EXPECT_FALSE(ask("c").allowed);
  change("DELETE FROM cap_rules WHERE id = " + row("r"));
  EXPECT_TRUE(ask("c").allowed);
  change("UPDATE campaigns SET cap_limit = 2 WHERE id = " + row("c"));
  expect_capped(ask("c"), campaign_rule("c"), 2, 2, hours{21});
}

TEST_F(RuleLife, SoftDeletedCampaignLosesItsCapAndStillCountsTowardsItsAdvertiser) {
  add_campaign("old", "2, 86400");
  add_campaign("new", "NULL, NULL");
  record("old", {hours{5}, hours{4}});
  record("new", {hours{1}});
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds) "
      "VALUES (" +
      row("r") + ", 'advertiser', " + row("a") + ", 3, 'sliding', 86400)");
  expect_capped(ask("new"), own("r"), 3, 3, hours{19});
  change("UPDATE campaigns SET deleted_at = now() WHERE id = " + row("old"));
  expect_capped(ask("new"), own("r"), 3, 3, hours{19});
  change("UPDATE cap_rules SET cap_limit = 4 WHERE id = " + row("r"));
  EXPECT_TRUE(ask("new").allowed);
  EXPECT_TRUE(ask("old").allowed);  // its own cap went with it
  // Another advertiser's from now on, with all its past.
  change("UPDATE campaigns SET advertiser_id = " + row("b") + " WHERE id = " + row("old") +
         "; UPDATE cap_rules SET cap_limit = 1 WHERE id = " + row("r"));
  expect_capped(ask("new"), own("r"), 1, 1, hours{23});
}

TEST_F(RuleLife, ShadowRuleNeverCapsAndIsCounted) {
  add_campaign("c", "NULL, NULL");
  record("c", {hours{2}, hours{1}});
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, mode) "
      "VALUES (" +
      row("r") + ", 'campaign', " + row("c") + ", 1, 'sliding', 86400, 'shadow')");
  const std::uint64_t before = shared_checker->stats().shadow_capped;
  EXPECT_TRUE(ask("c").allowed);
  EXPECT_EQ(shared_checker->stats().shadow_capped, before + 1);
  change("UPDATE cap_rules SET mode = 'enforce' WHERE id = " + row("r"));
  EXPECT_FALSE(ask("c").allowed);
  change("UPDATE cap_rules SET mode = 'shadow' WHERE id = " + row("r"));
  EXPECT_TRUE(ask("c").allowed);
}

TEST_F(RuleLife, RuleIsInForceFromItsStartUntilItsEnd) {
  add_campaign("c", "NULL, NULL");
  record("c", {hours{2}, hours{1}});
  change(
      "INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, "
      "starts_at, ends_at) VALUES (" +
      row("r") + ", 'campaign', " + row("c") + ", 2, 'sliding', 86400, " + at(hours{1}) + ", " +
      at(hours{2}) + ")");
  EXPECT_TRUE(ask("c", hours{1} - milliseconds{1}).allowed);
  expect_capped(ask("c", hours{1}), own("r"), 2, 2, hours{2});  // events before the start count
  EXPECT_FALSE(ask("c", hours{2} - milliseconds{1}).allowed);
  EXPECT_TRUE(ask("c", hours{2}).allowed);
  change("UPDATE cap_rules SET ends_at = NULL WHERE id = " + row("r"));
  expect_capped(ask("c", hours{2}), own("r"), 2, 2, hours{22});
}

// The daemon records how it is set, and Checkers compare.
TEST_F(RuleLife, TheUpdatersOwnConfigurationIsComparedByCheckers) {
  EXPECT_TRUE(
      wait_until([] { return shared_checker->health().store.config_state == ConfigState::kAgrees; },
                 std::chrono::seconds{60}))
      << shared_checker->health().store.config_text;
  CheckerOptions options;
  options.redis.addresses = {servers->redis.address()};
  options.retention = days{40};
  const auto other = Checker::create(options);
  ASSERT_TRUE(other.ok()) << other.status().text();
  const auto differs = [&] {
    return other.value()->health().store.config_state == ConfigState::kDiffers;
  };
  EXPECT_TRUE(wait_until(differs));
  const std::string text = other.value()->health().store.config_text;
  EXPECT_NE(text.find("retention: 32 d in the writer, 40 d here"), std::string::npos) << text;
}

TEST_F(RuleLife, CheckerThatOnlyPollsTakesTheChangeAtItsNextPoll) {
  const auto polling = make_checker(false, std::chrono::seconds{1});
  add_campaign("c", "1, 86400");
  record("c", {hours{2}});
  sql("UPDATE campaigns SET cap_limit = 1 WHERE id = " + row("c"));
  await_rules(*polling);
  expect_capped(ask("c", milliseconds{0}, *polling), campaign_rule("c"), 1, 1, hours{22});
  sql("UPDATE campaigns SET cap_limit = 2 WHERE id = " + row("c"));
  await_rules(*polling);
  EXPECT_TRUE(ask("c", milliseconds{0}, *polling).allowed);
}

}  // namespace rule_life_path_test
}  // namespace fcap
