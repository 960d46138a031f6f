#include "updater/config_publisher.h"

#include <gtest/gtest.h>

#include "tests/integration/support/store_calls.h"

namespace fcap::updater {
namespace {

redis::ConfigRecord record_of(std::chrono::days retention) {
  redis::ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = retention;
  return record;
}

class ConfigPublisherTest : public ::testing::Test {
 protected:
  // A store in memory completes at once: a look and a write are two rounds.
  void poll(ConfigPublisher& publisher) {
    for (int i = 0; i < 4; ++i) publisher.poll(now_);
    now_ += std::chrono::seconds{10};
  }
  std::string stored() { return testing::StoreCalls(*store_).get("fcap:!config").record; }
  void erase() {
    const std::string present = stored();
    testing::WaitingCompletion done;
    store_->compare_and_set({"fcap:!config", present, "", {}}, {}, done);
    done.wait();
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  ConfigPublisher::Clock::time_point now_ = ConfigPublisher::Clock::now();
};

TEST_F(ConfigPublisherTest, WritesAtTheStartAndAgainWhenItHasGoneMissing) {
  const redis::ConfigRecord record = record_of(std::chrono::days{32});
  ConfigPublisher publisher(*store_, record, {});
  poll(publisher);
  EXPECT_EQ(stored(), redis::encode_config(record));
  erase();
  EXPECT_EQ(stored(), "");
  poll(publisher);
  EXPECT_EQ(stored(), redis::encode_config(record));
}

TEST_F(ConfigPublisherTest, TheLatestToStartWinsAndTheOthersLeaveItAlone) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), {});
  poll(first);
  std::string logged;
  const redis::ConfigRecord changed = record_of(std::chrono::days{20});
  ConfigPublisher second(*store_, changed, [&](LogLevel, std::string_view text) { logged = text; });
  poll(second);
  EXPECT_EQ(stored(), redis::encode_config(changed));
  EXPECT_NE(logged.find("fcap:!config"), std::string::npos);
  poll(first);
  poll(second);
  EXPECT_EQ(stored(), redis::encode_config(changed));
}

}  // namespace
}  // namespace fcap::updater
