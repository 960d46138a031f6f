// What signatures.* make of a key file.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"
#include "updater/options/signatures.h"
#include "updater/settings/load_settings.h"

namespace fcap::updater {
namespace signature_settings_test {

using ::testing::HasSubstr;

constexpr Instant kServed = instant_from_ms(1'700'000'000'000);

class SignatureSettingsTest : public ::testing::Test {
 protected:
  SignatureSettingsTest() {
    std::ofstream(path_) << R"({"keys": [{"id": "k", "from": "2020-01-01T00:00:00Z", "secret": ")"
                         << std::string(64, 'a') << R"("}]})";
  }
  SignatureSettings settings(const std::string& more) {
    LoadedSettings loaded;
    std::vector<std::string> mistakes;
    apply_json(R"({"signatures": {"key_file": ")" + path_ + '"' + more + "}}", loaded, mistakes);
    EXPECT_THAT(mistakes, ::testing::IsEmpty());
    return loaded.settings.signatures;
  }
  // What becomes of a signed impression that happened this much after its serve time.
  std::string judge(const std::string& more, std::chrono::milliseconds after) {
    const auto check = make_signature_check(settings(more), {});
    EXPECT_TRUE(check.ok()) << check.status().text();
    const auto id =
        SigningKeys::read(path_).value()->sign({.user_id = "u", .campaign_id = "c"}, kServed);
    events::Event event;
    event.user_id = "u";
    event.campaign_id = "c";
    event.event_id = id.value();
    event.time = kServed + after;
    const auto refused = check.value()->refusal_of(event);
    return refused ? std::string(to_string(refused->reason)) : "accepted";
  }
  TemporaryDirectory directory_;
  std::string path_ = directory_.file("keys.json");
};

TEST_F(SignatureSettingsTest, NoFileMeansNoVerification) {
  const auto check = make_signature_check({}, {});
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(check.value(), nullptr);
}

TEST_F(SignatureSettingsTest, AFileThatCannotBeUsedIsNamedWithItsSetting) {
  SignatureSettings missing;
  missing.key_file = directory_.file("missing");
  EXPECT_THAT(make_signature_check(missing, {}).status().text(),
              ::testing::AllOf(HasSubstr("signatures.key_file"), HasSubstr(missing.key_file)));
}

TEST_F(SignatureSettingsTest, TheLimitsAreTheSettings) {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  EXPECT_EQ(judge("", hours{24}), "accepted");
  EXPECT_EQ(judge("", milliseconds{-1}), "signature_expired");
  EXPECT_EQ(judge(R"(, "lifetime": "1h")", hours{2}), "signature_expired");
  EXPECT_EQ(judge(R"(, "early_allowed": "1s")", milliseconds{-1000}), "accepted");
}

TEST_F(SignatureSettingsTest, WhatIsRequiredIsTheSettings) {
  events::Event click;
  click.type = EventType::kClick;
  click.user_id = "u";
  click.campaign_id = "c";
  click.event_id = "plain";
  click.time = kServed;
  const auto refused = [&](const std::string& required) {
    const auto check = make_signature_check(settings(R"(, "required": ")" + required + '"'), {});
    EXPECT_TRUE(check.ok());
    return check.value()->refusal_of(click).has_value();
  };
  EXPECT_FALSE(refused("nothing"));
  EXPECT_FALSE(refused("impressions"));
  EXPECT_TRUE(refused("all"));
}

}  // namespace signature_settings_test
}  // namespace fcap::updater
