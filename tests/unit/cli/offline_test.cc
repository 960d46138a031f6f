// fcap check --rules FILE --events FILE, and fcap rules: no server is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "config/rule_json.h"
#include "config/snapshot.h"

namespace fcap::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kRules = R"({
  "version": 12,
  "rules": [
    {"id": "three", "scope": "campaign", "target": "c1", "event_type": "impression", "limit": 3,
     "window": {"kind": "sliding", "length": "24h"}},
    {"id": "pair", "scope": "user", "event_type": "click", "limit": 1,
     "window": {"kind": "sliding", "length": "1h"}}
  ],
  "campaigns": [{"id": "c1", "advertiser_id": "a1"}]
})";

// 1700000000 is 1,700,000,000,000 ms. One event is there twice, one line is no event.
constexpr const char* kEvents =
    R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000200,"imp_id":"i3"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
{"user_id":"u2","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
not an event
{"user_id":"u1","campaign_id":"c1","timestamp":1700000100,"imp_id":"i2"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
)";

/// What the answer's first candidate says of one rule.
json rule_of(const json& answer, const std::string& id) {
  for (const json& rule : answer["verdicts"][0]["rules"]) {
    if (rule["id"] == id) return rule;
  }
  return {};
}

Ran check(const std::string& questions, const char* events = kEvents) {
  const File rules(kRules);
  const File log(events);
  return run({"check", "--rules", rules.path(), "--events", log.path()}, questions);
}

TEST(OfflineCheck, CountsEachEventOnceWhateverTheOrder) {
  const Ran ran = check(
      R"({"user":"u1","candidates":["c1","c2/cr9"],"at":1700000300000}
{"user":"u2","candidates":["c1"],"at":1700000300000}
)");
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_THAT(ran.lines(), SizeIs(2));
  const json first = json::parse(ran.lines()[0]);
  EXPECT_EQ(first["user"], "u1");
  EXPECT_EQ(first["rule_set_version"], 12);
  const json& capped = first["verdicts"][0];
  EXPECT_EQ(capped["candidate"], "c1");
  EXPECT_EQ(capped["allowed"], false);
  EXPECT_EQ(capped["rule"], "three");
  EXPECT_EQ(capped["count"], 3);
  EXPECT_EQ(capped["limit"], 3);
  EXPECT_EQ(capped["eligible_at"], 1'700'086'400'000);
  ASSERT_THAT(capped["rules"], SizeIs(2));
  EXPECT_EQ(first["verdicts"][1]["candidate"], "c2/cr9");
  EXPECT_EQ(first["verdicts"][1]["allowed"], true);
  EXPECT_EQ(first["verdicts"][1]["eligible_at"], 1'700'000'300'000);
  ASSERT_THAT(first["verdicts"][1]["rules"], SizeIs(1));
  EXPECT_EQ(first["verdicts"][1]["rules"][0]["id"], "pair");
  EXPECT_EQ(json::parse(ran.lines()[1])["verdicts"][0]["allowed"], true);
  EXPECT_THAT(ran.err, HasSubstr("1 of 6"));
}

TEST(OfflineCheck, LeavesOutWhatIsLaterThanTheQuestion) {
  const Ran ran = check(R"({"user":"u1","candidates":["c1"],"at":1700000150000})");
  const json answer = json::parse(ran.out);
  EXPECT_EQ(answer["verdicts"][0]["allowed"], true);
  EXPECT_EQ(rule_of(answer, "three")["count"], 2);
  EXPECT_EQ(answer["as_of"]["left_out"], 1);
  EXPECT_EQ(answer["as_of"]["arrival_times"], "unknown");
}

TEST(OfflineCheck, LineThatFailsDoesNotStopTheRest) {
  const Ran ran = check(
      "nonsense\n\n"
      R"({"id":9,"user":"u1","candidates":["c1"],"at":1700000300000})");
  EXPECT_EQ(ran.code, 1);
  ASSERT_THAT(ran.lines(), SizeIs(2));
  EXPECT_EQ(json::parse(ran.lines()[0])["line"], 1);
  EXPECT_EQ(json::parse(ran.lines()[0])["error"], "not JSON");
  EXPECT_EQ(json::parse(ran.lines()[1])["id"], 9);
  EXPECT_EQ(json::parse(ran.lines()[1])["verdicts"][0]["allowed"], false);
}

TEST(OfflineCheck, NullUserIsNotLookedUp) {
  const Ran ran = check(
      R"({"user":"00000000-0000-0000-0000-000000000000","candidates":["c1"],"at":1700000300000})",
      R"({"user_id":"00000000-0000-0000-0000-000000000000","campaign_id":"c1","timestamp":1700000000,"imp_id":"1"}
)");
  const json answer = json::parse(ran.out);
  EXPECT_EQ(answer["reason"], "no_user");
  EXPECT_EQ(answer["verdicts"][0]["allowed"], true);
}

TEST(OfflineCheck, ErasureForgetsWhatCameBefore) {
  const Ran ran = check(R"({"user":"u1","candidates":["c1"],"at":1700000300000})",
                        R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000200,"imp_id":"i3"}
{"user_id":"u1","type":"erasure","timestamp":1700000150,"event_id":"e1"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
)");
  EXPECT_EQ(rule_of(json::parse(ran.out), "three")["count"], 1) << ran.err;
}

TEST(Rules, JsonIsARulesFileAgain) {
  const File rules(kRules);
  const Ran ran = run({"rules", "--json", "--rules", rules.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto spec = config::parse_rules_json(ran.out);
  ASSERT_TRUE(spec.ok()) << spec.status().text();
  EXPECT_EQ(spec.value().version, 12U);
  EXPECT_THAT(spec.value().rules, SizeIs(2));
  EXPECT_THAT(ran.err, HasSubstr(rules.path()));
}

TEST(Rules, TextNamesVersionSourceAndEachRule) {
  const File rules(kRules);
  const Ran ran = run({"rules", "--rules", rules.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* word : {"version 12", "three", "campaign c1", "1d", "pair", "click"}) {
    EXPECT_THAT(ran.out, HasSubstr(word));
  }
  EXPECT_THAT(ran.out, HasSubstr(rules.path()));
}

TEST(Rules, SnapshotIsReadWhereARulesFileIs) {
  const File file("");
  const auto spec = config::parse_rules_json(kRules);
  ASSERT_TRUE(spec.ok());
  ASSERT_TRUE(config::write_snapshot(file.path(), spec.value()).ok());
  EXPECT_EQ(run({"rules", "--rules", file.path()}).code, 0);
  EXPECT_EQ(run({"rules", "--snapshot", file.path()}).code, 0);
}

TEST(RulesCheck, MistakesExitWithOne) {
  const File good(kRules);
  EXPECT_EQ(run({"rules", "--check", "--rules", good.path()}).code, 0);
  const File wrong(R"({"version":1,"rules":[{"id":"r","scope":"campaign","target":"c","limit":1,
      "window":{"kind":"sliding","length":"400d"}}],"campaigns":[]})");
  const Ran ran = run({"rules", "--check", "--rules", wrong.path()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("error: "));
  const json report = json::parse(run({"rules", "--check", "--json", "--rules", wrong.path()}).out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_FALSE(report["errors"].empty());
}

}  // namespace
}  // namespace fcap::cli_test
