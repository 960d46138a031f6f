// The fcap command as people run it: the built program, a real Redis, rules from a file.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "redis/config_record.h"
#include "support/checker_test.h"
#include "support/process.h"
#include "support/redis_clients.h"
#include "test_paths.h"

namespace fcap {
namespace commands_path_test {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using testing::kCheckedAt;
using ::testing::Not;

constexpr const char* kRules = R"({
  "version": 5,
  "rules": [
    {"id": "two-a-day", "scope": "campaign", "target": "c1", "event_type": "impression",
     "limit": 2, "window": {"kind": "sliding", "length": "24h"}},
    {"id": "gap", "scope": "user", "event_type": "impression", "limit": 1,
     "window": {"kind": "sliding", "length": "30s"}}
  ],
  "campaigns": []
})";

class CliCommands : public testing::CheckerTest {
 protected:
  void SetUp() override {
    CheckerTest::SetUp();
    if (IsSkipped()) return;
    rules_ = directory_.path() / "rules.json";
    std::ofstream(rules_) << kRules;
    world_->record("u1", 2);
  }

  Finished fcap(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), FCAP_CLI_BINARY);
    return testing::run(arguments,
                        {.environment = {"FCAP_REDIS=" + world_->redis.address(),
                                         "FCAP_RULES_FILE=" + rules_, "FCAP_TIMEOUT=30s"},
                         .input = input});
  }

  // kCheckedAt, for --at.
  const std::string at_ = std::to_string(to_ms(kCheckedAt));
  testing::TemporaryDirectory directory_;
  std::string rules_;
};

TEST_F(CliCommands, CheckSaysAllowedOrCappedByWhat) {
  const Finished text = fcap({"check", "u1", "c1", "c2/cr9", "--at", at_});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("capped"));
  EXPECT_THAT(text.output, HasSubstr("two-a-day"));
  EXPECT_THAT(text.output, HasSubstr("c2/cr9"));
  EXPECT_THAT(text.output, HasSubstr("arrived is not recorded"));
  const Finished machine = fcap({"check", "u1", "c1", "c2/cr9", "--json", "--at", at_});
  const json answer = json::parse(machine.output);
  EXPECT_EQ(answer["verdicts"][0]["allowed"], false);
  EXPECT_EQ(answer["verdicts"][0]["count"], 2);
  EXPECT_EQ(answer["verdicts"][0]["eligible_at"], to_ms(kCheckedAt) - 120'000 + 86'400'000);
  EXPECT_EQ(answer["verdicts"][1]["allowed"], true);
}

TEST_F(CliCommands, AtAnInstantLaterEntriesAreLeftOut) {
  const std::string earlier = std::to_string(to_ms(kCheckedAt - std::chrono::seconds(100)));
  const json answer = json::parse(fcap({"check", "u1", "c1", "--json", "--at", earlier}).output);
  EXPECT_EQ(answer["as_of"]["left_out"], 1);
  EXPECT_EQ(answer["verdicts"][0]["allowed"], false);  // 20 s after the first: the gap
  EXPECT_EQ(answer["verdicts"][0]["rule"], "gap");
}

TEST_F(CliCommands, CheckAnswersLinesFromStandardInputAndFromAFile) {
  const std::string lines = R"({"user":"u1","candidates":["c1"],"at":)" + at_ + R"(}
{"user":"u2","candidates":["c1"],"at":)" +
                            at_ + R"(}
)";
  const std::filesystem::path file = directory_.path() / "questions";
  std::ofstream(file) << lines;
  for (const Finished& finished :
       {fcap({"check", "--input", "-"}, lines), fcap({"check", "--input", file})}) {
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    std::istringstream output(finished.output);
    std::string first;
    std::string second;
    std::getline(output, first);
    std::getline(output, second);
    EXPECT_EQ(json::parse(first)["verdicts"][0]["allowed"], false);
    EXPECT_EQ(json::parse(second)["verdicts"][0]["allowed"], true);
  }
}

TEST_F(CliCommands, ShowTellsTheLedger) {
  const Finished text = fcap({"show", "u1"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  for (const char* word : {"fcap:{u1}", "2 entries", "c1 impression: 2", "expires in"}) {
    EXPECT_THAT(text.output, HasSubstr(word));
  }
  EXPECT_THAT(fcap({"show", "u1", "--time-zone", "Asia/Kolkata"}).output, HasSubstr("+05:30  "));
  const json shown = json::parse(fcap({"show", "u1", "--json"}).output);
  EXPECT_EQ(shown["entry_count"], 2);
  EXPECT_EQ(shown["campaigns"][0]["campaign"], "c1");
  EXPECT_EQ(shown["campaigns"][0]["entries"][1]["time"], to_ms(kCheckedAt) - 60'000);
  EXPECT_GT(shown["ttl_ms"].get<std::int64_t>(), 0);
  EXPECT_EQ(shown["record_bytes"], world_->redis.number({"STRLEN", "fcap:{u1}"}));
  EXPECT_THAT(fcap({"show", "nobody"}).output, HasSubstr("nothing is recorded"));
}

TEST_F(CliCommands, ShowListsReservations) {
  std::string frames;
  ledger::Reservation reservation{.event = {.time = kCheckedAt,
                                            .campaign = ledger::id_hash("c1"),
                                            .creative = 0,
                                            .type = EventType::kImpression,
                                            .fingerprint = 0xabc},
                                  .expires = kCheckedAt + std::chrono::minutes{5}};
  ledger::append_reservation(reservation, frames);
  reservation.event.fingerprint = 0xabd;
  reservation.released = true;
  ledger::append_reservation(reservation, frames);
  const auto client = testing::connected(testing::quick_options(world_->redis.address()));
  EXPECT_FALSE(testing::RedisCall({"APPEND", "fcap:{u1}", frames}).on(*client).is_error);
  const std::string at = std::to_string(to_ms(kCheckedAt));
  const Finished text = fcap({"show", "u1", "--at", at});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("2 entries"));
  EXPECT_THAT(text.output, HasSubstr(", live  00000abc\n"));
  EXPECT_THAT(text.output, HasSubstr(", released  00000abd\n"));
  const json shown = json::parse(fcap({"show", "u1", "--json"}).output)["reservations"];
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0]["campaign"], "c1");
  EXPECT_EQ(shown[0]["expires"], to_ms(reservation.expires));
  EXPECT_EQ(shown[1]["released"], true);
  EXPECT_EQ(shown[1]["state"], "released");
}

TEST_F(CliCommands, ShowNamesWhatNoRuleNames) {
  std::ofstream(rules_) << R"({"version": 1, "rules": [], "campaigns": []})";
  EXPECT_THAT(fcap({"show", "u1"}).output, Not(HasSubstr("c1 impression: 2")));
  EXPECT_THAT(fcap({"show", "u1", "--name", "c1"}).output, HasSubstr("c1 impression: 2"));
}

TEST_F(CliCommands, SettingsThatDifferFromTheUpdatersAreWarnedOf) {
  const std::string nobody = "no updater has ever written below the prefix \"fcap\"";
  for (const char* command : {"check", "explain"}) {
    EXPECT_THAT(fcap({command, "u1", "c1"}).errors, HasSubstr(nobody));
  }
  EXPECT_THAT(fcap({"show", "u1"}).errors, HasSubstr(nobody));
  redis::ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = std::chrono::hours(24 * 32);
  record.null_user_ids = {"00000000-0000-0000-0000-000000000000"};
  world_->redis.command({"SET", "fcap:!config", redis::encode_config(record)});
  EXPECT_EQ(fcap({"check", "u1", "c1"}).errors, "");
  EXPECT_THAT(fcap({"check", "u1", "c1", "--retention", "7d"}).errors,
              HasSubstr("warning: the updater has other settings: "));
}

TEST_F(CliCommands, IdsThatNoRuleNamesPrintAsHashes) {
  std::ofstream(rules_) << R"({"version":1,"rules":[],"campaigns":[]})";
  const Finished text = fcap({"show", "u1"});
  EXPECT_THAT(text.output, Not(HasSubstr("c1 impression")));
  EXPECT_THAT(text.output, ::testing::ContainsRegex("#[0-9a-f]{12} impression: 2"));
}

TEST_F(CliCommands, ExplainNamesEveryRule) {
  const Finished text = fcap({"explain", "u1", "c1", "--at", at_});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  for (const char* word : {"two-a-day", "stands in the way", "gap", "passes", "at most 2"}) {
    EXPECT_THAT(text.output, HasSubstr(word));
  }
}

TEST_F(CliCommands, RecordThatCannotBeReadFailsAndNamesTheKey) {
  world_->redis.command({"SET", "fcap:{u1}", "no record"});
  const Finished shown = fcap({"show", "u1"});
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.errors, HasSubstr("fcap:{u1}"));
  EXPECT_EQ(fcap({"check", "u1", "c1"}).exit_code, 1);
}

TEST_F(CliCommands, PasswordComesFromAFileOrTheEnvironment) {
  world_->redis.command({"CONFIG", "SET", "requirepass", "secret"});
  const std::filesystem::path file = directory_.path() / "password";
  std::ofstream(file) << "secret\n";
  EXPECT_EQ(fcap({"show", "u1", "--redis-password-file", file}).exit_code, 0);
  const Finished refused = fcap({"show", "u1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("NOAUTH"));
}

}  // namespace commands_path_test
}  // namespace fcap
