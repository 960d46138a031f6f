#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/signed_id.h>

#include "support/temporary_directory.h"

namespace fcap {
namespace key_file_test {

const std::string kSecret(64, 'a');

std::string key_text(const std::string& id, const std::string& more = "") {
  return R"({"id": ")" + id + R"(", "secret": ")" + kSecret +
         R"(", "from": "2026-01-01T00:00:00Z")" + more + "}";
}

std::string keys_text(const std::string& keys) {
  return R"({"keys": [)" + keys + "]}";
}

std::string mistake_of(const std::string& text) {
  const auto keys = SigningKeys::parse(text);
  return keys.ok() ? "" : keys.status().text();
}

TEST(SigningKeysJson, ReadsKeysInTheirOrder) {
  const auto keys = SigningKeys::parse(
      keys_text(key_text("b") + "," + key_text("a", R"(, "until": "2026-07-01T00:00:00Z")")));
  ASSERT_TRUE(keys.ok()) << keys.status().text();
  EXPECT_EQ(keys.value()->ids(), (std::vector<std::string>{"b", "a"}));
}

TEST(SigningKeysJson, SaysWhatIsWrongAndRepeatsNoSecret) {
  for (const char* text : {"", "[]", "{}", R"({"keys": 1})", R"({"keys": [], "more": 1})"}) {
    EXPECT_NE(mistake_of(text), "") << text;
  }
  EXPECT_NE(mistake_of(keys_text("1")).find("keys[0]: must be an object"), std::string::npos);
  EXPECT_NE(mistake_of(keys_text("{}")).find("keys[0].secret: is missing"), std::string::npos);
  EXPECT_NE(mistake_of(keys_text(key_text("a", R"(, "till": "x")"))).find("until"),
            std::string::npos);
  const std::string wrong_until = key_text("a", R"(, "until": "tomorrow")");
  EXPECT_NE(mistake_of(keys_text(wrong_until)).find("keys[0].until"), std::string::npos);
  const std::string secret =
      mistake_of(R"({"keys": [{"id": "a", "secret": "sesame", "from": "2026-01-01T00:00:00Z"}]})");
  EXPECT_NE(secret.find("keys[0].secret"), std::string::npos);
  EXPECT_EQ(secret.find("sesame"), std::string::npos);
}

class SigningKeyFiles : public ::testing::Test {
 protected:
  void write(const std::string& text) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << text;
    std::filesystem::rename(next, path_);
  }
  LogCallback log() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      log_.append(text).push_back('\n');
    };
  }
  std::string logged() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("keys.json");
  std::mutex mutex_;
  std::string log_;  // guarded by mutex_
};

TEST_F(SigningKeyFiles, AMissingFileIsNamed) {
  const auto file = SigningKeyFile::open(path_);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().text().find(path_), std::string::npos);
}

TEST_F(SigningKeyFiles, IsReadAgainWhenAsked) {
  write(keys_text(key_text("a")));
  const auto file = SigningKeyFile::open(path_, log());
  ASSERT_TRUE(file.ok()) << file.status().text();
  write(keys_text(key_text("b")));
  EXPECT_TRUE(file.value()->reload().ok());
  EXPECT_EQ(file.value()->keys()->ids(), std::vector<std::string>{"b"});
  EXPECT_NE(logged().find("key \"a\" was removed"), std::string::npos) << logged();
}

TEST_F(SigningKeyFiles, AnUnusableFileLeavesTheFormerKeysAndIsToldOnce) {
  write(keys_text(key_text("a")));
  const auto file = SigningKeyFile::open(path_, log());
  ASSERT_TRUE(file.ok()) << file.status().text();
  write("{");
  EXPECT_FALSE(file.value()->reload().ok());
  EXPECT_FALSE(file.value()->reload().ok());
  EXPECT_EQ(file.value()->keys()->ids(), std::vector<std::string>{"a"});
  const std::string told = logged();
  EXPECT_EQ(told.find("the former keys stay"), told.rfind("the former keys stay")) << told;
  EXPECT_NE(told.find("the former keys stay"), std::string::npos);
}

TEST_F(SigningKeyFiles, AFileThatEverybodyCanReadIsSaid) {
  using std::filesystem::perms;
  write(keys_text(key_text("a")));
  std::filesystem::permissions(path_, perms::owner_read | perms::owner_write | perms::group_read);
  const auto file = SigningKeyFile::open(path_, log());
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(logged(), "");
  std::filesystem::permissions(path_, perms::others_read, std::filesystem::perm_options::add);
  EXPECT_TRUE(file.value()->reload().ok());
  EXPECT_NE(logged().find("every account of this machine can read"), std::string::npos) << logged();
  const std::string before = logged();
  ASSERT_TRUE(SigningKeyFile::open(path_, log()).ok());
  EXPECT_NE(logged(), before) << "said at the start, too";
}

TEST_F(SigningKeyFiles, ALineOfItsLogIsOneLine) {
  path_ = directory_.file("keys\n\x1b[2J.json");
  write(keys_text(key_text("a")));
  std::vector<std::string> lines;
  const auto file = SigningKeyFile::open(
      path_, [&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  ASSERT_TRUE(file.ok()) << file.status().text();
  write(keys_text(key_text("b")));
  ASSERT_TRUE(file.value()->reload().ok());
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
  }
}

TEST_F(SigningKeyFiles, AChangeIsFoundWithoutBeingAskedFor) {
  write(keys_text(key_text("a")));
  const auto file = SigningKeyFile::open(path_, log());
  ASSERT_TRUE(file.ok()) << file.status().text();
  write(keys_text(key_text("a") + "," + key_text("b")));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (file.value()->keys()->ids().size() < 2 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  EXPECT_EQ(file.value()->keys()->ids().size(), 2U);
}

}  // namespace key_file_test
}  // namespace fcap
