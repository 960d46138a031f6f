#include "rule_text/snapshot.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_directory.h"
#include "unit/rule_text/random_specs.h"

namespace fcap::rule_text {
namespace snapshot_test {

using ::testing::HasSubstr;

RuleSetSpec small_spec() {
  RuleSetSpec spec;
  spec.version = 3;
  spec.campaigns = {{"c1", "a1", {}, false}};
  return spec;
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Snapshot, IsReadBackAsItWasWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  ASSERT_TRUE(write_snapshot(path, small_spec()).ok());
  const auto read = read_snapshot(path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(first_difference(read.value(), small_spec()), "");
}

// Frozen: another version of fcap, or another program, reads and writes the same.
TEST(Snapshot, TheBytesAreTheDocumentedOnes) {
  RuleSetSpec spec = small_spec();
  Rule rule;
  rule.id = "r";
  rule.scope = Scope::kUser;
  rule.limit = 258;
  rule.window = {.kind = Window::Kind::kCalendar, .unit = CalendarUnit::kWeek};
  rule.segment = "s";
  rule.end = instant_from_ms(1);
  rule.mode = Rule::Mode::kShadow;
  spec.rules = {rule};
  const std::string_view payload(
      "\3\0\0\0\0\0\0\0"
      "\0\0"
      "\0\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\1\0\0\0"
      "\x24"
      "\x1b"
      "\1\0r"
      "\0\0"
      "\2\1\0\0"
      "\6"
      "\3\0UTC"
      "\1\0s"
      "\1\0\0\0\0\0\0\0"
      "\1\0\0\0"
      "\2\0c1"
      "\2\0a1"
      "\0"
      "\0\0\0\0",
      75);
  const std::string bytes = snapshot_bytes(spec);
  EXPECT_EQ(bytes.substr(bytes.find('\n') + 1), payload);
}

TEST(Snapshot, TheHeaderHasTheLengthAndTheHashOfTheRest) {
  EXPECT_EQ(snapshot_header(snapshot_bytes(RuleSetSpec{})),
            "fcap-rules 4 00000000000000000034 de25847822ca64cf");
}

TEST(Snapshot, OneFromBeforeTheFirstReleaseIsRefusedWithWhatToDo) {
  const std::string json = R"(fcap-rules 1 53 22aa145a5fe74a11
{
  "version": 0,
  "rules": [],
  "campaigns": []
}
)";
  std::string second = snapshot_bytes(small_spec());
  second.replace(second.find(" 4 "), 3, " 2 ");
  std::string third = second;
  third.replace(third.find(" 2 "), 3, " 3 ");
  for (const std::string& old : {json, second, third}) {
    const TemporaryDirectory directory;
    put(directory.file("s"), old);
    const Status status = read_snapshot(directory.file("s")).status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt);
    EXPECT_EQ(status.text(),
              "snapshot " + directory.file("s") + ": is from before the first release: delete it");
  }
}

TEST(Snapshot, KnowsWhichStateOfTheTablesItHolds) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  SnapshotView view;
  view.version = {.version = 3,
                  .changed_at = "2026-03-01 12:00:00.000001+00",
                  .accepted_version = 2,
                  .rows_left_out = 258};
  ASSERT_TRUE(write_snapshot(path, view).ok());
  const auto read = load_snapshot(path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read.value().version, view.version);
  EXPECT_EQ(read.value().spec.version, 3U);
}

// More than one piece of the file, and records that lie across the pieces.
TEST(Snapshot, ALargeOneIsReadBackAsItWasWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  RandomSpecs specs(test_seed());
  RuleSetSpec large;
  while (large.rules.size() < 20'000) {
    RuleSetSpec some = specs.spec();
    for (Rule& rule : some.rules) large.rules.push_back(std::move(rule));
    for (Campaign& campaign : some.campaigns) large.campaigns.push_back(std::move(campaign));
  }
  ASSERT_TRUE(write_snapshot(path, large).ok());
  EXPECT_GT(std::filesystem::file_size(path), 1'000'000U);
  const auto read = read_snapshot(path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(first_difference(read.value(), large), "");
}

TEST(Snapshot, APublishedOneIsWrittenOnlyWhenTheFileHoldsAnother) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  const auto inode = [&] {
    struct stat about {};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return about.st_ino;
  };
  RuleSetSpec spec = small_spec();
  const auto publish = [&] {
    const auto set = RuleSet::build(spec, {});
    return set.ok() &&
           publish_snapshot(path, view_of(*set.value(), {.version = spec.version})).ok();
  };
  ASSERT_TRUE(publish());
  // Held open, so that a new file cannot get the old one's number.
  const std::ifstream held(path);
  const auto first = inode();
  const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), hour_ago, 0), 0);
  ASSERT_TRUE(publish());
  EXPECT_EQ(inode(), first);
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_GT(about.st_mtime, ::time(nullptr) - 1800) << "it is current again";
  spec.campaigns[0].deleted = true;
  ASSERT_TRUE(publish());
  EXPECT_NE(inode(), first) << "the same version of another history";
}

TEST(Snapshot, WritingLeavesNothingElseBehind) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  ASSERT_TRUE(write_snapshot(path, small_spec()).ok());
  ASSERT_TRUE(write_snapshot(path, small_spec()).ok());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

// Containers that share a volume may all have the same process id.
TEST(Snapshot, WhatAnotherProcessIsWritingBesideItStaysAsItIs) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  const std::string others = path + ".new." + std::to_string(::getpid()) + ".";
  constexpr int kNames = 1000;
  for (int i = 0; i < kNames; ++i) put(others + std::to_string(i), "another's");
  ASSERT_TRUE(write_snapshot(path, small_spec()).ok());
  for (int i = 0; i < kNames; ++i) {
    std::ifstream left(others + std::to_string(i), std::ios::binary);
    std::string word;
    left >> word;
    EXPECT_EQ(word, "another's") << i;
  }
}

TEST(Snapshot, NobodyElseMayWriteIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  const mode_t before = ::umask(0);
  const Status status = write_snapshot(path, small_spec());
  ::umask(before);
  ASSERT_TRUE(status.ok());
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0644U);
}

TEST(Snapshot, ADirectoryThatIsMissingIsAnErrorThatNamesTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("missing/rules.snapshot");
  const Status status = write_snapshot(path, small_spec());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.text(), HasSubstr(path));
}

TEST(Snapshot, AFailedWriteLeavesTheOldFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  // A directory in its place cannot be renamed over.
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  EXPECT_FALSE(write_snapshot(path, small_spec()).ok());
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(Snapshot, AMissingFileIsNotFound) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_snapshot(directory.file("none")).status().code(), StatusCode::kNotFound);
}

TEST(Snapshot, AnEmptyFileIsCorrupt) {
  const TemporaryDirectory directory;
  put(directory.file("s"), "");
  EXPECT_EQ(read_snapshot(directory.file("s")).status().code(), StatusCode::kCorrupt);
}

TEST(Snapshot, ATruncatedFileIsCorrupt) {
  const TemporaryDirectory directory;
  const std::string bytes = snapshot_bytes(small_spec());
  put(directory.file("s"), bytes.substr(0, bytes.size() / 2));
  const Status status = read_snapshot(directory.file("s")).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.text(), HasSubstr(directory.file("s")));
}

TEST(Snapshot, AnotherFormatIsRefused) {
  std::string bytes = snapshot_bytes(small_spec());
  bytes.replace(bytes.find(" 4 "), 3, " 5 ");
  EXPECT_THAT(parse_snapshot(bytes).status().text(), HasSubstr("format 4"));
}

TEST(Snapshot, ADirectoryOrDeviceIsNoSnapshot) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_snapshot(directory.path()).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(read_snapshot("/dev/null").status().code(), StatusCode::kCorrupt);
}

}  // namespace snapshot_test
}  // namespace fcap::rule_text
