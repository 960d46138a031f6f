#include "updater/watch/changed_files.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.h"
#include "updater/doctor/restart_check.h"

namespace fcap::updater {
namespace changed_files_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Made for this test, by: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes
constexpr const char* kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUXn0N19vuAoPaVimvx3sKJeMtj20wCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHdXBkYXRlcjAgFw0yNjExMjYxMzA3MzlaGA8yMTI2MTEwMjEz
MDczOVowEjEQMA4GA1UEAwwHdXBkYXRlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABMSqkyExOCsgz7GAQDmEm9nPUD7zpA8widbndYEKrl5AbfMeJteV9+18Sv4E
cx8unExoqTAdc4ksk0Xoht+iOZSjUzBRMB0GA1UdDgQWBBRdYadmKLUE45QYYHgH
BLQJ4eK6pjAfBgNVHSMEGDAWgBRdYadmKLUE45QYYHgHBLQJ4eK6pjAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIBsbayNaBTfafqM8eqm7zi/R4QOY
VUChyC7CYKBGhbCAAiBfOx/aT+ZJEeaVk4Kcm0NlFVGIjSm+ULqpEy3OVimg8Q==
-----END CERTIFICATE-----
)";
constexpr const char* kItsKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyFD7Rfyfi6GZr2+L
ow7lOloPA5LttpRRsfh65Pv3mqShRANCAATEqpMhMTgrIM+xgEA5hJvZz1A+86QP
MInW53WBCq5eQG3zHibXlfftfEr+BHMfLpxMaKkwHXOJLJNF6IbfojmU
-----END PRIVATE KEY-----
)";
constexpr const char* kAnotherKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJ23wb1zpro+x2hLY
SRw8QLUX/EJ58PTO2m+zm8s/97uhRANCAAQ2mK52Y/yAHIMQ/R9p5MbeDvACc9Tr
ocJRAgnBAKcDG5bmJu1vfA87SYL871UonD4CVGejB/JkwNB/QdesVcGO
-----END PRIVATE KEY-----
)";

class ChangedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    replace("certificate", "old");
    replace("key", "old");
    make({});
  }
  void make(ChangedFiles::Clock::time_point not_before) {
    files_ = std::make_unique<ChangedFiles>(ChangedFiles::Options{
        .files = {{"ssl.certificate.location", directory_.file("certificate")},
                  {"ssl.key.location", directory_.file("key")},
                  {"ssl.crl.location", directory_.file("missing")}},
        .check =
            [this] {
              ++checks_;
              return usable_;
            },
        .not_before = not_before,
        .log = [this](LogLevel, std::string_view text) { log_.emplace_back(text); }});
  }
  // As an operator does it: another file takes the name.
  void replace(const std::string& name, const std::string& text) {
    std::ofstream(directory_.file("new")) << text;
    std::filesystem::rename(directory_.file("new"), directory_.file(name));
  }
  bool look() { return files_->look(now_ += 5s); }

  const TemporaryDirectory directory_;
  Status usable_;
  int checks_ = 0;
  std::vector<std::string> log_;
  std::unique_ptr<ChangedFiles> files_;
  ChangedFiles::Clock::time_point now_{1000s};
};

TEST_F(ChangedFilesTest, NothingHasChanged) {
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(look());
  EXPECT_EQ(checks_, 0);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(ChangedFilesTest, AChangeCountsOnceItHasSettledAndTheLogNamesIt) {
  replace("certificate", "new");
  EXPECT_FALSE(look());
  replace("key", "new");
  EXPECT_FALSE(look());
  EXPECT_EQ(checks_, 0);
  EXPECT_TRUE(look());
  EXPECT_THAT(log_, ElementsAre(AllOf(HasSubstr(": ssl.certificate.location, ssl.key.location"),
                                      Not(HasSubstr("ssl.crl.location")))));
}

TEST_F(ChangedFilesTest, AFileThatAppearsOrIsWrittenInPlaceHasChanged) {
  std::ofstream(directory_.file("key"), std::ios::app) << "more";
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  make({});
  replace("missing", "revoked");
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  EXPECT_THAT(log_.back(), HasSubstr("ssl.crl.location"));
}

TEST_F(ChangedFilesTest, WhatCannotBeUsedIsSaidOncePerChangeAndTriedEveryMinute) {
  usable_ = Status::error(StatusCode::kInvalidArgument, "it is another certificate's key");
  replace("certificate", "new");
  for (int i = 0; i < 1 + 12 + 12; ++i) EXPECT_FALSE(look());
  EXPECT_EQ(checks_, 2);
  EXPECT_THAT(log_, ElementsAre(AllOf(HasSubstr("ssl.certificate.location: "),
                                      HasSubstr("another certificate's key"))));
  replace("key", "wrong");
  EXPECT_FALSE(look());
  EXPECT_FALSE(look());
  EXPECT_EQ(log_.size(), 2U);
  replace("key", "new");
  usable_ = {};
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
}

TEST_F(ChangedFilesTest, WhatChangesBackIsNoChange) {
  replace("missing", "revoked");
  EXPECT_FALSE(look());
  std::filesystem::remove(directory_.file("missing"));
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(look());
  EXPECT_EQ(checks_, 0);
}

TEST_F(ChangedFilesTest, AFileThatChangesDuringTheCheckIsLookedAtAgain) {
  files_ = std::make_unique<ChangedFiles>(
      ChangedFiles::Options{.files = {{"key", directory_.file("key")}},
                            .check =
                                [this] {
                                  if (++checks_ == 1) replace("key", "newer");
                                  return Status{};
                                },
                            .log = [](LogLevel, std::string_view) {}});
  replace("key", "new");
  EXPECT_FALSE(look());
  EXPECT_FALSE(look());
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  EXPECT_EQ(checks_, 2);
}

TEST_F(ChangedFilesTest, NothingIsFollowedTooEarly) {
  make(now_ + 60s);
  replace("key", "new");
  for (int i = 0; i < 11; ++i) EXPECT_FALSE(look());
  EXPECT_TRUE(look());
}

TEST(RestartCheck, WatchesWhatOnlyARestartReads) {
  Settings settings;
  settings.kafka.properties = {
      {"ssl.ca.location", "/ca"}, {"ssl.key.location", "/key"}, {"security.protocol", "ssl"}};
  settings.secret_files = {{"kafka.sasl_password", "/kafka"},
                           {"postgres.password", "/postgres"},
                           {"redis.password", "/redis"}};  // libfcap looks at it
  std::string found;
  for (const auto& [setting, path] : files_read_once(settings)) found += setting + path + " ";
  EXPECT_EQ(found,
            "kafka.sasl_password/kafka postgres.password/postgres "
            "kafka.properties ssl.ca.location/ca kafka.properties ssl.key.location/key ");
}

TEST(RestartCheck, AKeyThatDoesNotBelongToTheCertificateIsNamed) {
  const TemporaryDirectory directory;
  const std::string certificate = directory.file("certificate");
  const std::string key = directory.file("key");
  SettingSources sources;
  sources.flags = {{"kafka.brokers", "127.0.0.1:1"},
                   {"kafka.properties", "security.protocol=ssl"},
                   {"kafka.properties", "ssl.certificate.location=" + certificate},
                   {"kafka.properties", "ssl.key.location=" + key},
                   {"redis.addresses", "127.0.0.1:1"}};
  std::ofstream(certificate) << kCertificate;
  std::ofstream(key) << kAnotherKey;
  EXPECT_THAT(check_restart(sources).text(), HasSubstr("ssl.key.location"));
  std::filesystem::remove(key);
  EXPECT_THAT(check_restart(sources).text(), HasSubstr("ssl.key.location"));
  // Then only the broker is missing.
  std::ofstream(key) << kItsKey;
  EXPECT_THAT(check_restart(sources).text(),
              AllOf(HasSubstr("127.0.0.1:1"), Not(HasSubstr("ssl.key.location"))));
}

TEST(RestartCheck, AConfigurationWithMistakesDoesNotServe) {
  SettingSources sources;
  sources.flags = {{"kafka.brokres", "127.0.0.1:1"}};
  EXPECT_THAT(check_restart(sources).text(), HasSubstr("kafka.brokres"));
}

}  // namespace changed_files_test
}  // namespace fcap::updater
