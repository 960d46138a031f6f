#include "config/snapshot.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/config/random_specs.h"
#include "unit/config/temporary_directory.h"

namespace fcap::config {
namespace {

using testing::HasSubstr;

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
  EXPECT_EQ(snapshot_bytes(RuleSetSpec{}), R"(fcap-rules 1 53 22aa145a5fe74a11
{
  "version": 0,
  "rules": [],
  "campaigns": []
}
)");
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
  bytes.replace(bytes.find(" 1 "), 3, " 2 ");
  EXPECT_THAT(parse_snapshot(bytes).status().text(), HasSubstr("format 1"));
}

TEST(Snapshot, ADirectoryOrDeviceIsNoSnapshot) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_snapshot(directory.path()).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(read_snapshot("/dev/null").status().code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace fcap::config
