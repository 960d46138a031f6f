// The write path where a server refuses one thing and takes everything else.
#include <thread>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterRefusals : public testing::UpdaterPipeline {
 protected:
  void use_account(const std::vector<std::string>& rules) {
    redis_user_ = "writer";
    std::vector<std::string> words = {"ACL", "SETUSER", redis_user_, "on", ">" + redis_user_, "~*"};
    words.insert(words.end(), rules.begin(), rules.end());
    ASSERT_EQ(redis_->command(words), "OK");
  }
  bool says(const RunningUpdater& updater, const std::string& text) {
    return wait_until([&] { return updater.not_ready().find(text) != std::string::npos; },
                      kPatience);
  }
};

TEST_F(UpdaterRefusals, AnAccountThatCannotWriteMarksReadsNothingAndSaysSo) {
  use_account({"+@all", "-@scripting"});
  produce(2'000);
  producer_->flush();
  auto updater = start_updater();
  EXPECT_TRUE(says(*updater, "NOPERM")) << updater->not_ready() << updater->log();
  std::this_thread::sleep_for(milliseconds{1'000});
  EXPECT_EQ(redis_->number({"DBSIZE"}), 0);
  EXPECT_EQ(committed(), 0);
  EXPECT_NE(updater->log().find("NOPERM"), std::string::npos);
  EXPECT_NE(updater->not_ready(), "");
  redis_->command({"ACL", "SETUSER", redis_user_, "+@scripting"});
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience));
}

TEST_F(UpdaterRefusals, AnAccountThatCannotSetExpiriesAppendsOnceAndSaysSo) {
  use_account({"+@all", "-pexpireat"});
  produce(2'000);
  producer_->flush();
  auto updater = start_updater();
  EXPECT_TRUE(says(*updater, "NOPERM")) << updater->not_ready() << updater->log();
  const std::string key = redis_->command({"RANDOMKEY"});
  const auto length = redis_->number({"STRLEN", key});
  std::this_thread::sleep_for(milliseconds{2'000});
  EXPECT_EQ(redis_->number({"STRLEN", key}), length) << "a retry has appended again";
  EXPECT_NE(updater->log().find("NOPERM"), std::string::npos);
  redis_->command({"ACL", "SETUSER", redis_user_, "+pexpireat"});
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until(
      [&] { return expected_.wrong_expiries(*redis_, std::chrono::days{32}).empty(); }, kPatience));
}

}  // namespace
}  // namespace fcap
