#include "redis/password_file.h"

#include <fstream>

#include <gtest/gtest.h>

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

}  // namespace password_file_test
}  // namespace fcap::redis
