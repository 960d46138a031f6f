// The Store over a real Redis: what each operation does to a record and to its expiry.
#include <latch>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "redis/redis_store.h"
#include "redis/store_operations.h"
#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/store_calls.h"

namespace fcap {
namespace store_redis_test {

using testing::StoreCalls;

Instant in(std::chrono::seconds time) {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()) +
         time;
}

class RedisStore : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    store_ = testing::connected_store(*redis_);
    calls_ = std::make_unique<StoreCalls>(*store_);
  }

  std::string expiry_of(const std::string& key) { return redis_->command({"PEXPIRETIME", key}); }

  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreCalls> calls_;
};

std::string ms(Instant instant) {
  return std::to_string(to_ms(instant));
}

TEST_F(RedisStore, ReadsWhatIsThereAndSaysSoWhenNothingIs) {
  EXPECT_EQ(calls_->get("k").code, StoreCode::kNotFound);
  redis_->command({"SET", "k", "value"});
  const auto outcome = calls_->get("k");
  EXPECT_EQ(outcome.code, StoreCode::kOk);
  EXPECT_EQ(outcome.record, "value");
}

TEST_F(RedisStore, AppendMakesARecordWithAnExpiryAndTellsItsLength) {
  const Instant at = in(std::chrono::hours{1});
  const auto first = calls_->append("k", "abc", at);
  EXPECT_EQ(first.code, StoreCode::kOk);
  EXPECT_EQ(first.length_bytes, 3U);
  EXPECT_EQ(expiry_of("k"), ms(at));
  EXPECT_EQ(calls_->append("k", "de", at).length_bytes, 5U);
  EXPECT_EQ(redis_->command({"GET", "k"}), "abcde");
}

TEST_F(RedisStore, AppendExtendsAnExpiryAndNeverShortensOne) {
  const Instant soon = in(std::chrono::hours{1});
  const Instant late = in(std::chrono::hours{2});
  calls_->append("k", "a", soon);
  calls_->append("k", "b", late);
  EXPECT_EQ(expiry_of("k"), ms(late));
  EXPECT_EQ(calls_->append("k", "c", soon).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(late));
}

TEST_F(RedisStore, AppendGivesAnExpiryToARecordThatWasLeftWithoutOne) {
  redis_->command({"SET", "k", "left by a crash between two commands"});
  const Instant at = in(std::chrono::hours{1});
  EXPECT_EQ(calls_->append("k", "x", at).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(at));
}

// Waits for all of a list's appends.
class ListOutcome final : public StoreListCompletion {
 public:
  explicit ListOutcome(std::size_t appends)
      : lengths(appends), codes(appends), left_(static_cast<std::ptrdiff_t>(appends)) {}
  void complete(std::size_t index, const StoreOutcome& outcome) noexcept override {
    lengths[index] = outcome.length_bytes;
    codes[index] = outcome.code;
    left_.count_down();
  }
  void wait() { left_.wait(); }
  std::vector<std::size_t> lengths;
  std::vector<StoreCode> codes;

 private:
  std::latch left_;
};

TEST_F(RedisStore, AListOfAppendsIsEachOfThem) {
  const Instant at = in(std::chrono::hours{1});
  redis_->command({"RPUSH", "k7", "x"});
  std::vector<std::string> keys(1000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = "k" + std::to_string(i);
  std::vector<Store::Append> appends;
  appends.reserve(keys.size());
  for (const std::string& key : keys) appends.push_back({key, key, at, {}});
  ListOutcome outcome(appends.size());
  store_->append_all(appends, std::chrono::steady_clock::now() + std::chrono::seconds(30), outcome);
  outcome.wait();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(outcome.codes[i], i == 7 ? StoreCode::kServerError : StoreCode::kOk) << i;
    ASSERT_EQ(outcome.lengths[i], i == 7 ? 0 : keys[i].size()) << i;
  }
  for (const char* key : {"k0", "k6", "k8", "k255", "k256", "k999"}) {
    EXPECT_EQ(redis_->command({"GET", key}), key);
    EXPECT_EQ(expiry_of(key), ms(at));
  }
}

TEST_F(RedisStore, AnExpiryIsLeftAloneOnlyWhereTheRecordIsTheKnownOne) {
  const Instant soon = in(std::chrono::hours{1});
  const Instant late = in(std::chrono::hours{2});
  calls_->append("known", "abc", soon);
  calls_->append("grown", "abc", soon);
  redis_->command({"SET", "unlimited", "abc"});
  const std::vector<Store::Append> appends = {{"known", "d", late, 3},
                                              {"grown", "d", late, 2},
                                              {"gone", "d", late, 3},
                                              {"unlimited", "d", late, 1}};
  ListOutcome outcome(appends.size());
  store_->append_all(appends, std::chrono::steady_clock::now() + std::chrono::seconds(30), outcome);
  outcome.wait();
  EXPECT_EQ(outcome.lengths, (std::vector<std::size_t>{4, 4, 1, 4}));
  EXPECT_EQ(expiry_of("known"), ms(soon));
  EXPECT_EQ(expiry_of("grown"), ms(late));
  EXPECT_EQ(expiry_of("gone"), ms(late));
  EXPECT_EQ(expiry_of("unlimited"), ms(late));
}

TEST_F(RedisStore, BinaryKeysAndRecordsPassUnchanged) {
  const std::string key("k\r\n\0$5\r\n", 8);
  std::string bytes;
  for (int i = 0; i < 70'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  EXPECT_EQ(calls_->append(key, bytes, in(std::chrono::hours{1})).code, StoreCode::kOk);
  EXPECT_EQ(calls_->get(key).record, bytes);
}

TEST_F(RedisStore, CompareAndSetStoresOnlyOverWhatWasExpected) {
  const Instant at = in(std::chrono::hours{1});
  EXPECT_EQ(calls_->compare_and_set("k", "x", "new", at).code, StoreCode::kConflict);
  EXPECT_EQ(calls_->compare_and_set("k", std::nullopt, "first", at).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(at));
  EXPECT_EQ(calls_->compare_and_set("k", std::nullopt, "second", at).code, StoreCode::kConflict);
  EXPECT_EQ(calls_->compare_and_set("k", "firs", "second", at).code, StoreCode::kConflict);
  EXPECT_EQ(calls_->get("k").record, "first");
  EXPECT_EQ(calls_->compare_and_set("k", "first", "second", at).code, StoreCode::kOk);
  EXPECT_EQ(calls_->get("k").record, "second");
}

TEST_F(RedisStore, WhatWasAppendedMeanwhileMayStay) {
  const Instant at = in(std::chrono::hours{1});
  const auto exchange = [&](std::string_view expected, std::string_view desired) {
    testing::WaitingCompletion done;
    store_->compare_and_set({"k", expected, desired, at, true},
                            std::chrono::steady_clock::now() + std::chrono::seconds{30}, done);
    return done.wait().code;
  };
  EXPECT_EQ(exchange("read", "new"), StoreCode::kConflict) << "there is none";
  calls_->append("k", std::string("re\0d", 4), at);
  calls_->append("k", std::string("\0tail", 5), at);
  EXPECT_EQ(exchange("re", "new"), StoreCode::kOk);
  EXPECT_EQ(calls_->get("k").record, std::string("new\0d\0tail", 10));
  EXPECT_EQ(exchange("newer", "x"), StoreCode::kConflict);
  EXPECT_EQ(exchange(std::string_view("new\0d", 5), ""), StoreCode::kOk);
  EXPECT_EQ(calls_->get("k").record, std::string("\0tail", 5));
  EXPECT_EQ(expiry_of("k"), ms(at));
  EXPECT_EQ(exchange(std::string_view("\0tail", 5), ""), StoreCode::kOk);
  EXPECT_EQ(redis_->command({"EXISTS", "k"}), "0");
}

TEST_F(RedisStore, CompareAndSetKeepsTheLaterExpiry) {
  const Instant soon = in(std::chrono::hours{1});
  const Instant late = in(std::chrono::hours{2});
  calls_->append("k", "a", late);
  EXPECT_EQ(calls_->compare_and_set("k", "a", "b", soon).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(late));
  const Instant later = in(std::chrono::hours{3});
  EXPECT_EQ(calls_->compare_and_set("k", "b", "c", later).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(later));
}

TEST_F(RedisStore, CompareAndSetGivesAnExpiryToARecordThatHasNone) {
  redis_->command({"SET", "k", "a"});
  const Instant at = in(std::chrono::hours{1});
  EXPECT_EQ(calls_->compare_and_set("k", "a", "b", at).code, StoreCode::kOk);
  EXPECT_EQ(expiry_of("k"), ms(at));
}

TEST_F(RedisStore, WhatIsBoundToAnEarlierConnectionIsNotWritten) {
  RedisOptions options;
  options.addresses = {redis_->address()};
  const std::shared_ptr<redis::Client> client = testing::connected(options);
  const auto store = redis::make_redis_store(client);
  const auto exchange = [&](std::string_view desired, std::uint64_t epoch) {
    testing::WaitingCompletion done;
    Store::CompareAndSet change{
        .key = "bound", .desired = desired, .expire_at = in(std::chrono::hours{1})};
    change.connection_epoch = epoch;
    store->compare_and_set(change, std::chrono::steady_clock::now() + std::chrono::seconds{30},
                           done);
    return done.wait().code;
  };
  const std::uint64_t before = client->connection_epoch();
  redis_->command({"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_TRUE(testing::wait_until(
      [&] { return client->connection_epoch() >= before + 2 && client->connected(); }));
  EXPECT_EQ(exchange("late", before), StoreCode::kUnavailable);
  EXPECT_EQ(redis_->command({"EXISTS", "bound"}), "0");
  // Also where the script has to be sent whole.
  redis_->command({"SCRIPT", "FLUSH"});
  EXPECT_EQ(exchange("in time", client->connection_epoch()), StoreCode::kOk);
  EXPECT_EQ(redis_->command({"GET", "bound"}), "in time");
}

TEST_F(RedisStore, CompareAndSetToNothingDeletes) {
  const Instant at = in(std::chrono::hours{1});
  calls_->append("k", "a", at);
  EXPECT_EQ(calls_->compare_and_set("k", "b", "", at).code, StoreCode::kConflict);
  EXPECT_EQ(calls_->compare_and_set("k", "a", "", at).code, StoreCode::kOk);
  EXPECT_EQ(redis_->command({"EXISTS", "k"}), "0");
}

TEST_F(RedisStore, TheScriptGoesByItsHashAndComesBackAfterAScriptFlush) {
  const Instant at = in(std::chrono::hours{1});
  calls_->append("k", "0", at);
  EXPECT_EQ(calls_->compare_and_set("k", "0", "1", at).code, StoreCode::kOk);
  EXPECT_EQ(redis_->command({"SCRIPT", "EXISTS", std::string(redis::compare_and_set_sha())}), "1");
  EXPECT_EQ(redis_->command({"SCRIPT", "FLUSH"}), "OK");
  EXPECT_EQ(calls_->compare_and_set("k", "1", "2", at).code, StoreCode::kOk);
  EXPECT_EQ(calls_->compare_and_set("k", "1", "3", at).code, StoreCode::kConflict);
  EXPECT_EQ(calls_->get("k").record, "2");
}

TEST_F(RedisStore, ANewRecordNeedsNoScript) {
  const Instant at = in(std::chrono::hours{1});
  EXPECT_EQ(calls_->compare_and_set("k", std::nullopt, "1", at).code, StoreCode::kOk);
  EXPECT_EQ(redis_->command({"PEXPIRETIME", "k"}), std::to_string(to_ms(at)));
  EXPECT_EQ(calls_->compare_and_set("k", std::nullopt, "2", at + std::chrono::hours{1}).code,
            StoreCode::kConflict);
  EXPECT_EQ(calls_->get("k").record, "1");
  EXPECT_EQ(redis_->command({"PEXPIRETIME", "k"}), std::to_string(to_ms(at)));
  EXPECT_EQ(redis_->command({"SCRIPT", "EXISTS", std::string(redis::compare_and_set_sha())}), "0");
}

TEST_F(RedisStore, AWrongTypeIsTheServersErrorWithItsText) {
  redis_->command({"RPUSH", "k", "x"});
  for (const auto& outcome : {calls_->get("k"), calls_->append("k", "x", in(std::chrono::hours{1})),
                              calls_->compare_and_set("k", "x", "y", in(std::chrono::hours{1}))}) {
    EXPECT_EQ(outcome.code, StoreCode::kServerError);
    EXPECT_NE(outcome.text.find("WRONGTYPE"), std::string::npos) << outcome.text;
  }
}

TEST_F(RedisStore, AFullServersErrorReachesTheCallerAndWritesNothing) {
  redis_->command({"CONFIG", "SET", "maxmemory", "1"});
  const auto outcome = calls_->append("k", "x", in(std::chrono::hours{1}));
  EXPECT_EQ(outcome.code, StoreCode::kServerError);
  EXPECT_TRUE(outcome.text.starts_with("OOM")) << outcome.text;
  EXPECT_EQ(calls_->compare_and_set("k", std::nullopt, "x", in(std::chrono::hours{1})).code,
            StoreCode::kServerError);
  redis_->command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(calls_->get("k").code, StoreCode::kNotFound);
}

}  // namespace store_redis_test
}  // namespace fcap
