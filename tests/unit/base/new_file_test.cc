#include "base/new_file.h"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_directory.h"

namespace fcap::base {
namespace new_file_test {

void put(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_to(const NewFile& file, std::string_view content) {
  ASSERT_EQ(::write(file.fd(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
}

class NewFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.file("snapshot"); }
  [[nodiscard]] std::string beside(const std::string& suffix) const {
    return path() + ".new." + suffix;
  }
  // First the names that others may have, then one that is free.
  [[nodiscard]] static NewFile::Suffix first_taken(std::size_t taken = 1) {
    return [i = std::size_t{0}, taken]() mutable { return i++ < taken ? "taken" : "free"; };
  }
  void replace_beside_what_is_taken() const {
    NewFile file(path(), first_taken());
    ASSERT_TRUE(file.open());
    EXPECT_TRUE(std::filesystem::exists(beside("free")));
    write_to(file, "new");
    EXPECT_EQ(file.replace(), 0);
    EXPECT_EQ(content_of(path()), "new");
    EXPECT_FALSE(std::filesystem::exists(beside("free")));
  }
  [[nodiscard]] std::size_t files() const {
    const std::filesystem::directory_iterator begin(directory_.path());
    return static_cast<std::size_t>(std::distance(begin, {}));
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(NewFileTest, WhatAKilledWriterHasLeftIsNotWrittenToAndStays) {
  put(beside("taken"), "half of an ol");
  replace_beside_what_is_taken();
  EXPECT_EQ(content_of(beside("taken")), "half of an ol");
}

TEST_F(NewFileTest, ALinkOfThatNameIsNotFollowed) {
  const std::string target = path() + " of somebody else";
  put(target, "of somebody else");
  std::filesystem::create_symlink(target, beside("taken"));
  replace_beside_what_is_taken();
  EXPECT_EQ(content_of(target), "of somebody else");
  EXPECT_TRUE(std::filesystem::is_symlink(beside("taken")));
}

TEST_F(NewFileTest, NorOneToWhereThereIsNoFileYet) {
  const std::string target = path() + " of somebody else";
  std::filesystem::create_symlink(target, beside("taken"));
  replace_beside_what_is_taken();
  EXPECT_FALSE(std::filesystem::exists(target));
}

// To open it for writing would wait for a reader.
TEST_F(NewFileTest, APipeOfThatNameIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(beside("taken").c_str(), 0600), 0);
  replace_beside_what_is_taken();
}

TEST_F(NewFileTest, TwoWritersAtOnceHaveAFileEach) {
  put(path(), "old");
  NewFile first(path(), [] { return "taken"; });
  NewFile second(path(), first_taken());
  ASSERT_TRUE(first.open());
  ASSERT_TRUE(second.open());
  write_to(first, "the first one's ");
  write_to(second, "the second one's");
  write_to(first, "and more");
  EXPECT_EQ(content_of(path()), "old");
  EXPECT_EQ(first.replace(), 0);
  EXPECT_EQ(content_of(path()), "the first one's and more");
  EXPECT_EQ(second.replace(), 0);
  EXPECT_EQ(content_of(path()), "the second one's");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, NamesDifferByThemselves) {
  {
    const NewFile first(path());
    const NewFile second(path());
    ASSERT_TRUE(first.open());
    ASSERT_TRUE(second.open());
    EXPECT_EQ(files(), 2U);
  }
  EXPECT_EQ(files(), 0U) << "they were not put in place";
}

TEST_F(NewFileTest, OneThatIsNotPutInPlaceTakesNothingAwayThatIsNotItsOwn) {
  put(path(), "old");
  put(beside("taken"), "another's");
  {
    const NewFile file(path(), first_taken());
    ASSERT_TRUE(file.open());
  }
  EXPECT_EQ(content_of(path()), "old");
  EXPECT_EQ(content_of(beside("taken")), "another's");
  EXPECT_EQ(files(), 2U);
}

TEST_F(NewFileTest, WhereEachNameIsTakenItGivesUpAndLeavesThemAlone) {
  put(beside("taken"), "another's");
  std::size_t tries = 0;
  {
    const NewFile file(path(), [&] {
      ++tries;
      return "taken";
    });
    EXPECT_FALSE(file.open());
    EXPECT_EQ(file.error(), EEXIST);
  }
  EXPECT_EQ(tries, 16U);
  EXPECT_EQ(content_of(beside("taken")), "another's");
}

}  // namespace new_file_test
}  // namespace fcap::base
