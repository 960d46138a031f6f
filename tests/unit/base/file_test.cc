#include "base/file.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace fcap::base {
namespace file_test {

class ReadFile : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    std::ofstream(path(), std::ios::binary) << content;
    return path();
  }
  [[nodiscard]] std::string path() const { return directory_.file("file"); }
  [[nodiscard]] const std::string& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ReadFile, GivesEveryByte) {
  for (const std::size_t length : {0U, 1U, 4095U, 4096U, 4097U, 100'000U}) {
    std::string content(length, 'x');
    if (length > 2) content[1] = '\0';
    const auto read = read_file(write(content));
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read.value(), content);
  }
}

TEST_F(ReadFile, WorksWhereTheSizeIsNotKnown) {
  const auto read = read_file("/proc/self/cmdline");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_NE(read.value().find("unit_base"), std::string::npos);
}

TEST_F(ReadFile, NamesAFileThatIsMissingAndADirectory) {
  const auto missing = read_file(path());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.status().text(), "cannot read " + path() + ": No such file or directory");
  const auto of_directory = read_file(directory());
  EXPECT_EQ(of_directory.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(of_directory.status().text(), "cannot read " + directory() + ": Is a directory");
}

TEST_F(ReadFile, ReadsNoMoreThanAllowed) {
  EXPECT_TRUE(read_file(write(std::string(1024, 'x')), 1024).ok());
  EXPECT_EQ(read_file(write(std::string(1025, 'x')), 1024).status().text(),
            "cannot read " + path() + ": it is larger than 1 KiB");
  EXPECT_EQ(read_file("/dev/zero", std::size_t{1} << 20U).status().text(),
            "cannot read /dev/zero: it is larger than 1 MiB");
  EXPECT_EQ(read_file("/dev/zero", 5000).status().text(),
            "cannot read /dev/zero: it is larger than 5000 bytes");
}

}  // namespace file_test
}  // namespace fcap::base
