#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/store.h>

namespace fcap {
namespace memory_store_test {

struct Seen final : StoreCompletion {
  void complete(const StoreOutcome& outcome) noexcept override {
    ++calls;
    code = outcome.code;
    record = outcome.record;
    length_bytes = outcome.length_bytes;
  }
  int calls = 0;
  StoreCode code = StoreCode::kTimeout;
  std::string record;
  std::size_t length_bytes = 0;
};

Instant in(std::chrono::seconds time) {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()) +
         time;
}

class MemoryStore : public ::testing::Test {
 protected:
  Seen get(std::string_view key) {
    Seen seen;
    store_->get(key, {}, seen);
    return seen;
  }
  Seen append(std::string_view key, std::string_view bytes, Instant expire_at) {
    Seen seen;
    store_->append(key, bytes, expire_at, {}, seen);
    return seen;
  }
  StoreCode compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                            std::string_view desired, Instant expire_at) {
    Seen seen;
    store_->compare_and_set({key, expected, desired, expire_at}, {}, seen);
    EXPECT_EQ(seen.calls, 1);
    return seen.code;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  Instant later_ = in(std::chrono::hours{1});
};

TEST_F(MemoryStore, CompletesEachOperationOnceBeforeItReturns) {
  EXPECT_EQ(get("k").calls, 1);
  EXPECT_EQ(get("k").code, StoreCode::kNotFound);
  const Seen first = append("k", "abc", later_);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(first.code, StoreCode::kOk);
  EXPECT_EQ(first.length_bytes, 3U);
  EXPECT_EQ(append("k", "de", later_).length_bytes, 5U);
  EXPECT_EQ(get("k").record, "abcde");
}

TEST_F(MemoryStore, ComparesTheWholeRecord) {
  EXPECT_EQ(compare_and_set("k", "x", "a", later_), StoreCode::kConflict);
  EXPECT_EQ(compare_and_set("k", std::nullopt, "a", later_), StoreCode::kOk);
  EXPECT_EQ(compare_and_set("k", std::nullopt, "b", later_), StoreCode::kConflict);
  EXPECT_EQ(compare_and_set("k", "ab", "b", later_), StoreCode::kConflict);
  EXPECT_EQ(compare_and_set("k", "a", "b", later_), StoreCode::kOk);
  EXPECT_EQ(get("k").record, "b");
}

TEST_F(MemoryStore, SettingToNothingDeletes) {
  append("k", "a", later_);
  EXPECT_EQ(compare_and_set("k", "a", "", later_), StoreCode::kOk);
  EXPECT_EQ(get("k").code, StoreCode::kNotFound);
  EXPECT_EQ(compare_and_set("k", std::nullopt, "", later_), StoreCode::kOk);
  EXPECT_EQ(get("k").code, StoreCode::kNotFound);
}

TEST_F(MemoryStore, AnExpiredRecordIsGone) {
  append("k", "old", in(-std::chrono::seconds{1}));
  EXPECT_EQ(get("k").code, StoreCode::kNotFound);
  append("k", "old", in(-std::chrono::seconds{1}));
  EXPECT_EQ(append("k", "new", later_).length_bytes, 3U);
}

TEST_F(MemoryStore, AnExpiryIsExtendedAndNeverShortened) {
  append("k", "a", later_);
  append("k", "b", in(-std::chrono::seconds{1}));
  EXPECT_EQ(get("k").record, "ab");
  EXPECT_EQ(compare_and_set("k", "ab", "c", in(-std::chrono::seconds{1})), StoreCode::kOk);
  EXPECT_EQ(get("k").record, "c");
}

TEST_F(MemoryStore, RecordsThatExpiredUnreadDoNotPushOutOthers) {
  append("kept", "a", later_);
  for (int i = 0; i < 5000; ++i) append(std::to_string(i), "x", in(-std::chrono::seconds{1}));
  EXPECT_EQ(get("kept").record, "a");
  EXPECT_EQ(get("4999").code, StoreCode::kNotFound);
}

TEST_F(MemoryStore, WhatWasAppendedMeanwhileMayStay) {
  append("k", "read", later_);
  append("k", "+tail", later_);
  Seen seen;
  store_->compare_and_set({"k", "other", "new", later_, true}, {}, seen);
  EXPECT_EQ(seen.code, StoreCode::kConflict);
  store_->compare_and_set({"k", "read", "new", later_, true}, {}, seen);
  EXPECT_EQ(seen.code, StoreCode::kOk);
  EXPECT_EQ(get("k").record, "new+tail");
  store_->compare_and_set({"none", "read", "new", later_, true}, {}, seen);
  EXPECT_EQ(seen.code, StoreCode::kConflict);
}

TEST_F(MemoryStore, NoIncrementIsLostWhenManyThreadsCompareAndSet) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kEach; ++i) {
        for (;;) {
          const Seen before = get("n");
          const bool present = before.code == StoreCode::kOk;
          const auto next = std::to_string(present ? std::stoi(before.record) + 1 : 1);
          const auto expected =
              present ? std::optional<std::string_view>(before.record) : std::nullopt;
          if (compare_and_set("n", expected, next, later_) == StoreCode::kOk) break;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(get("n").record, std::to_string(kThreads * kEach));
}

TEST_F(MemoryStore, SaysThatItIsWellAndKnowsNoConfiguration) {
  store_->expect_config(
      {.key_prefix = "fcap", .retention = std::chrono::hours(1), .null_user_ids = {}});
  const StoreHealth health = store_->health();
  EXPECT_TRUE(health.connected);
  EXPECT_FALSE(health.breaker_open);
  EXPECT_EQ(health.server_errors, 0U);
  EXPECT_EQ(health.config_state, ConfigState::kUnknown);
}

}  // namespace memory_store_test
}  // namespace fcap
