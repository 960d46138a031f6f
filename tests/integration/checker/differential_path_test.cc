// Random events and rules through Kafka, fcap-updater, Redis and libfcap, against a reference that
// counts the events themselves: the same verdicts, counts and instants, before and after the same
// messages came again, in another order, and in a replay.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/whole_path.h"
#include "tests/support/seed.h"

namespace fcap {
namespace differential_path_test {

using testing::ReferenceCaps;
using testing::ReferenceVerdict;
using testing::SeenEvent;
using testing::WholePath;

constexpr std::size_t kUsers = 12;
constexpr std::size_t kCampaigns = 8;
constexpr std::size_t kAdvertisers = 3;
constexpr int kEvents = 900;
constexpr int kChecks = 150;

// A random catalog with rules, in PostgreSQL and in the reference.
class World {
 public:
  World(WholePath& path, std::uint64_t seed) : path_(path), random_(seed) {}

  void make_rules() {
    std::vector<Rule> rules;
    for (std::size_t i = 0; i < kCampaigns; ++i) {
      const std::string advertiser = "a" + std::to_string(pick(kAdvertisers));
      reference.set_advertiser(campaign(i), advertiser);
      const auto window = std::chrono::seconds(60 + pick(std::size_t{2} * 86'400U));
      const bool capped = pick(4) != 0;
      sql("INSERT INTO campaigns VALUES ('" + campaign(i) + "', '" + advertiser + "', " +
          (capped ? std::to_string(pick(5)) : "NULL") + ", " + std::to_string(window.count()) +
          ")");
      if (capped) rules.push_back(rule_of_campaign(i));
    }
    for (std::size_t i = 0; i < kAdvertisers; ++i)
      rules.push_back(add_rule("advertiser", "a" + std::to_string(i)));
    rules.push_back(add_rule("user", ""));
    rules.push_back(add_rule("user", ""));
    rules.push_back(add_rule("campaign", campaign(pick(kCampaigns))));
    reference.set_rules(std::move(rules));
  }

  SeenEvent make_event() {
    const auto age = std::chrono::milliseconds(pick(std::size_t{3} * 86'400'000U));
    return {.user = user(pick(kUsers)),
            .campaign = campaign(pick(kCampaigns)),
            .id = "e" + std::to_string(events_++),
            .time = base - age};
  }

  void produce(const SeenEvent& event) {
    path_.produce(event);
    reference.add(event);
  }

  void expect_same_answers(Checker& checker, const char* when) {
    for (int i = 0; i < kChecks; ++i) {
      const std::string asked = user(pick(kUsers));
      const Instant now = base + std::chrono::milliseconds(pick(std::size_t{2} * 86'400'000U)) -
                          std::chrono::hours(12);
      std::vector<std::string> ids;
      std::vector<Candidate> candidates;
      for (std::size_t c = 0; c < kCampaigns; ++c) ids.push_back(campaign(c));
      candidates.reserve(ids.size());
      for (const std::string& id : ids) candidates.push_back({id, {}});
      const CheckResult result = checker.check(asked, candidates, {.now = now});
      ASSERT_EQ(result.reason, Reason::kPassed) << to_string(result.reason);
      for (std::size_t c = 0; c < kCampaigns; ++c) {
        const Verdict& verdict = result.verdicts[c];
        const ReferenceVerdict got{.allowed = verdict.allowed,
                                   .rule_id = std::string(verdict.rule_id),
                                   .count = verdict.count,
                                   .limit = verdict.limit,
                                   .eligible_at = verdict.eligible_at};
        const ReferenceVerdict expected = reference.judge(asked, campaign(c), now);
        ASSERT_EQ(got.allowed, expected.allowed) << describe(when, asked, c, now, got, expected);
        ASSERT_EQ(got.eligible_at, expected.eligible_at)
            << describe(when, asked, c, now, got, expected);
        if (!expected.allowed) {
          ASSERT_EQ(got, expected) << describe(when, asked, c, now, got, expected);
        }
      }
    }
  }

  [[nodiscard]] std::size_t pick(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }

  ReferenceCaps reference{std::chrono::days(32)};
  const Instant base =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());

  static std::string user(std::size_t i) { return "u" + std::to_string(i); }
  static std::string campaign(std::size_t i) { return "c" + std::to_string(i); }

 private:
  void sql(const std::string& statement) { path_.postgres.sql(path_.conninfo, statement); }

  Rule rule_of_campaign(std::size_t i) {
    const auto row =
        path_.postgres
            .sql(path_.conninfo,
                 "SELECT cap_limit, window_seconds FROM campaigns WHERE id = '" + campaign(i) + "'")
            .at(0);
    return rule("campaign:" + campaign(i), Scope::kCampaign, campaign(i), std::stoul(row[0]),
                std::chrono::seconds(std::stol(row[1])));
  }

  Rule add_rule(const std::string& scope, const std::string& target) {
    const std::string id = "r" + std::to_string(rules_++);
    const std::size_t limit = scope == "campaign" ? 1 + pick(4) : 1 + pick(20);
    const auto window = std::chrono::milliseconds(1000 + pick(std::size_t{2} * 86'400'000U));
    const std::string seconds = std::to_string(window.count() / 1000) + "." +
                                std::to_string(1000 + window.count() % 1000).substr(1);
    sql("INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds) VALUES "
        "('" +
        id + "', '" + scope + "', " + (target.empty() ? "NULL" : "'" + target + "'") + ", " +
        std::to_string(limit) + ", 'sliding', " + seconds + ")");
    const Scope kind = scope == "user"         ? Scope::kUser
                       : scope == "advertiser" ? Scope::kAdvertiser
                                               : Scope::kCampaign;
    return rule(id, kind, target, limit, window);
  }

  static Rule rule(const std::string& id, Scope scope, const std::string& target, std::size_t limit,
                   std::chrono::milliseconds window) {
    Rule made;
    made.id = id;
    made.scope = scope;
    made.target = target;
    made.limit = static_cast<std::uint32_t>(limit);
    made.window.length = window;
    return made;
  }

  [[nodiscard]] static std::string describe(const char* when, const std::string& user,
                                            std::size_t campaign, Instant now,
                                            const ReferenceVerdict& got,
                                            const ReferenceVerdict& expected) {
    const auto one = [](const ReferenceVerdict& v) {
      return (v.allowed ? "allowed" : "capped by " + v.rule_id) + ", " + std::to_string(v.count) +
             " of " + std::to_string(v.limit) + ", eligible " +
             (v.eligible_at ? std::to_string(to_ms(*v.eligible_at)) : "never");
    };
    return std::string(when) + ", seed " + std::to_string(test_seed()) + ": " + user + " c" +
           std::to_string(campaign) + " at " + std::to_string(to_ms(now)) +
           "\n  fcap: " + one(got) + "\n  reference: " + one(expected);
  }

  WholePath& path_;
  std::mt19937_64 random_;
  std::size_t events_ = 0;
  std::size_t rules_ = 0;
};

TEST(WholePathDifferential, AnswersAreThoseOfAReferenceThatCountsTheEvents) {
  if (!WholePath::available()) GTEST_SKIP() << "redis-server, java, mvn or PostgreSQL is missing";
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(test_seed()));
  WholePath path;
  World world(path, test_seed());
  world.make_rules();
  path.start_updater();
  std::vector<SeenEvent> events;
  events.reserve(kEvents);
  for (int i = 0; i < kEvents; ++i) events.push_back(world.make_event());
  for (const SeenEvent& event : events) world.produce(event);
  ASSERT_TRUE(path.drain()) << path.updater_log();
  const auto checker = path.make_checker();
  ASSERT_NO_FATAL_FAILURE(world.expect_same_answers(*checker, "at first"));

  // The same ids again: all of them, shuffled, some with another (earlier or later) time.
  std::shuffle(events.begin(), events.end(), std::mt19937_64(test_seed()));
  for (SeenEvent event : events) {
    if (world.pick(10) == 0)
      event.time += std::chrono::seconds(60) - std::chrono::seconds(world.pick(120));
    world.produce(event);
  }
  ASSERT_TRUE(path.drain()) << path.updater_log();
  ASSERT_NO_FATAL_FAILURE(world.expect_same_answers(*checker, "after redelivery"));

  // A replay finds everything there; after a loss it brings everything back.
  const auto idle = path.replay({"--json"});
  ASSERT_EQ(idle.exit_code, 0) << idle.errors;
  ASSERT_NO_FATAL_FAILURE(world.expect_same_answers(*checker, "after a replay"));
  ASSERT_EQ(path.stop_updater(), 0) << path.updater_log();
  path.redis.command({"FLUSHALL"});
  const auto refill = path.replay({"--json"});
  ASSERT_EQ(refill.exit_code, 0) << refill.errors;
  ASSERT_NO_FATAL_FAILURE(world.expect_same_answers(*checker, "after a loss and a replay"));
}

}  // namespace differential_path_test
}  // namespace fcap
