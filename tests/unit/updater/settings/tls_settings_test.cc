// The settings of TLS, which stand in a group of their own, and secrets that name their file.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"
#include "updater/options/libraries.h"
#include "updater/settings/load_settings.h"

namespace fcap::updater {
namespace tls_settings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TlsSettings, StandInAGroupOrByTheirWholeName) {
  LoadedSettings loaded;
  std::vector<std::string> mistakes;
  apply_json(R"({"redis": {"tls": {"enabled": true, "ca_file": "/ca.pem", "verify": false},
                           "tls.server_name": "redis.example"}})",
             loaded, mistakes);
  EXPECT_THAT(mistakes, ElementsAre());
  const RedisOptions options = redis_options(loaded.settings, {});
  EXPECT_TRUE(options.tls.enabled);
  EXPECT_FALSE(options.tls.verify);
  EXPECT_EQ(options.tls.ca_file, "/ca.pem");
  EXPECT_EQ(options.tls.server_name, "redis.example");
}

TEST(TlsSettings, MistakesInTheGroupAreNamed) {
  LoadedSettings loaded;
  std::vector<std::string> mistakes;
  apply_json(R"({"redis": {"tls": {"enabeld": true, "ca_file": 1}, "database": {"a": 1}}})", loaded,
             mistakes);
  EXPECT_THAT(mistakes, ::testing::UnorderedElementsAre(
                            HasSubstr("did you mean redis.tls.enabled?"),
                            HasSubstr("redis.tls.ca_file"), HasSubstr("redis.database")));
}

TEST(TlsSettings, APasswordsFileIsGivenOnAndAPasswordIsNot) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("password");
  std::ofstream(file) << "secret\n";
  LoadedSettings loaded;
  std::vector<std::string> mistakes;
  apply_json(R"({"redis": {"password_file": ")" + file + R"("}})", loaded, mistakes);
  EXPECT_THAT(mistakes, ElementsAre());
  RedisOptions options = redis_options(loaded.settings, {});
  EXPECT_EQ(options.password_file, file);
  EXPECT_EQ(options.password, "");
  loaded.settings.secret_files.clear();
  options = redis_options(loaded.settings, {});
  EXPECT_EQ(options.password_file, "");
  EXPECT_EQ(options.password, "secret");
}

}  // namespace tls_settings_test
}  // namespace fcap::updater
