#include "redis/password_file.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>
#include <fcap/store.h>

#include "support/temporary_directory.h"

namespace fcap::redis {
namespace password_file_test {

class PasswordFile : public ::testing::Test {
 protected:
  Result<std::string> read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return read_password("--password-file", path_);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("password");
};

TEST_F(PasswordFile, LineEndsAreNoPartOfThePassword) {
  for (const char* content : {"secret", "secret\n", "secret\r\n", "secret\n\n"}) {
    const auto password = read(content);
    ASSERT_TRUE(password.ok()) << password.status().text();
    EXPECT_EQ(password.value(), "secret");
  }
  EXPECT_EQ(read(" a\nb \n").value(), " a\nb ");
}

TEST_F(PasswordFile, AnEmptyOneIsRefused) {
  for (const char* content : {"", "\n", "\r\n"}) {
    const auto password = read(content);
    ASSERT_FALSE(password.ok());
    EXPECT_EQ(password.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(password.status().text(), "--password-file: " + path_ + " holds no password");
  }
}

TEST_F(PasswordFile, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(read_password("--password-file", path_).status().text(),
            "--password-file: cannot read " + path_ + ": No such file or directory");
  EXPECT_EQ(read_password("--password-file", directory_.path()).status().text(),
            "--password-file: cannot read " + directory_.path() + ": Is a directory");
  EXPECT_EQ(read(std::string(65'537, 'x')).status().text(),
            "--password-file: cannot read " + path_ + ": it is larger than 64 KiB");
}

TEST(RedisSecrets, FilesThatEverybodyCanReadAreSaid) {
  using std::filesystem::perms;
  const TemporaryDirectory directory;
  RedisOptions options;
  options.addresses = {"127.0.0.1:1"};
  options.topology = RedisTopology::kSentinel;
  options.sentinel_master = "m";
  options.password_file = directory.file("password");
  options.sentinel_password_file = directory.file("sentinels");
  std::mutex mutex;
  std::string log;
  options.log = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    log.append(text).push_back('\n');
  };
  const auto said = [&](const std::string& path) {
    return log.find("every account of this machine can read the secret in \"" + path + "\"") !=
           std::string::npos;
  };
  for (const std::string& path : {options.password_file, options.sentinel_password_file}) {
    std::ofstream(path) << "secret";
    std::filesystem::permissions(path, perms::owner_read | perms::group_read);
  }
  for (const bool readable : {false, true}) {
    if (readable) {
      std::filesystem::permissions(options.sentinel_password_file, perms::others_read,
                                   std::filesystem::perm_options::add);
    }
    ASSERT_TRUE(make_redis_store(options).ok());
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(said(options.password_file)) << log;
    EXPECT_EQ(said(options.sentinel_password_file), readable) << log;
  }
}

}  // namespace password_file_test
}  // namespace fcap::redis
