#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/integration/support/store_calls.h"
#include "updater/pipeline/config_publisher.h"

namespace fcap::updater::testing {

inline const ConfigPublisher::Reader kReader{"g", "t"};

inline redis::ConfigRecord record_of(std::chrono::days retention) {
  redis::ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = retention;
  return record;
}

/// What is in a store in memory, by publishers that look every 10 s.
class ConfigPublisherTest : public ::testing::Test {
 protected:
  // A store in memory completes at once: a look and a write are two rounds.
  void tick(ConfigPublisher& publisher) {
    for (int i = 0; i < 4; ++i) publisher.tick(now_, wall_);
    now_ += std::chrono::seconds{10};
  }
  std::string stored() { return fcap::testing::StoreCalls(*store_).get("fcap:!config").record; }
  void replace(const std::string& value) {
    const std::string present = stored();
    Store::CompareAndSet change{"fcap:!config", std::nullopt, value, at_ + std::chrono::days{430}};
    if (!present.empty()) change.expected = present;
    fcap::testing::WaitingCompletion done;
    store_->compare_and_set(change, {}, done);
    EXPECT_EQ(done.wait().code, StoreCode::kOk);
  }
  void erase() { replace(""); }
  std::string stored_settings() {
    return redis::with_created(redis::with_missing_before(stored(), {}), {});
  }

  redis::ConfigRecord::MissingBefore missing() {
    const auto parsed = redis::parse_config(stored());
    EXPECT_TRUE(parsed.ok()) << stored();
    return parsed.ok() ? parsed.value().missing_before : redis::ConfigRecord::MissingBefore{};
  }

  const Instant at_ = std::chrono::floor<std::chrono::seconds>(base::wall_now());
  Instant wall_ = at_;
  std::unique_ptr<Store> store_ = make_memory_store();
  ConfigPublisher::Clock::time_point now_ = ConfigPublisher::Clock::now();
};

inline OpenGaps gaps_of(const std::map<std::int32_t, std::optional<Instant>>& partitions) {
  OpenGaps gaps;
  for (const auto& [number, before] : partitions) gaps.missing_before[number] = before;
  return gaps;
}

}  // namespace fcap::updater::testing
