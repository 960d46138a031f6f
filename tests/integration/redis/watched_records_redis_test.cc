// Groups of records that are replaced only if nobody has changed one of them meanwhile.
#include <array>
#include <map>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "redis/watched_records.h"
#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/shipped_account.h"

namespace fcap {
namespace watched_records_redis_test {

using namespace std::chrono_literals;
using redis::WatchedRecords;
using Keys = std::vector<std::string_view>;

constexpr std::int64_t kLateMs = 4'000'000'000'000;
const std::string kLate = std::to_string(kLateMs);

struct Outcome final : WatchedRecords::Completion {
  struct Found {
    StoreCode code;
    std::string record;
    std::optional<Instant> expire_at;
  };
  void on_record(std::size_t index, const StoreOutcome& outcome,
                 std::optional<Instant> expire_at) noexcept override {
    found[index] = {outcome.code, std::string(outcome.record), expire_at};
  }
  void on_done(StoreCode ended) noexcept override {
    code = ended;
    done.release();
  }
  std::map<std::size_t, Found> found;
  StoreCode code = StoreCode::kOk;
  std::binary_semaphore done{0};
};

class RedisWatchedRecords : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    connect(testing::quick_options(redis_->address()));
    for (const char* const key : {"fcap:{a}", "fcap:{b}"}) {
      redis_->command({"SET", key, "old", "PXAT", kLate});
    }
  }
  void connect(const RedisOptions& options) {
    records_.reset();
    client_ = testing::connected(options);
    records_ = redis::make_watched_records(*client_);
  }
  std::map<std::size_t, Outcome::Found> read(const Keys& keys,
                                             StoreCode expected = StoreCode::kOk) {
    Outcome outcome;
    records_->read(keys, std::chrono::steady_clock::now() + 30s, outcome);
    outcome.done.acquire();
    EXPECT_EQ(outcome.code, expected);
    return outcome.found;
  }
  StoreCode replace(const Keys& keys, std::string_view desired = "new") {
    std::vector<WatchedRecords::Change> changes;
    for (const auto key : keys) changes.push_back({key, desired, instant_from_ms(kLateMs + 5)});
    Outcome outcome;
    records_->replace(changes, std::chrono::steady_clock::now() + 30s, outcome);
    outcome.done.acquire();
    return outcome.code;
  }
  std::string at(const std::string& key) { return redis_->command({"GET", key}); }

  std::unique_ptr<redis::Client> client_;
  std::unique_ptr<WatchedRecords> records_;
};

TEST_F(RedisWatchedRecords, AreReadWithTheirExpiriesAndReplaced) {
  redis_->command({"SET", "fcap:{forever}", "kept"});
  redis_->command({"RPUSH", "fcap:{list}", "no record"});
  const auto found = read({"fcap:{a}", "fcap:{none}", "fcap:{forever}", "fcap:{list}", "fcap:{b}"});
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found.at(0).record, "old");
  EXPECT_EQ(found.at(0).expire_at, instant_from_ms(kLateMs));
  EXPECT_EQ(found.at(1).code, StoreCode::kNotFound);
  EXPECT_EQ(found.at(2).record, "kept");
  EXPECT_EQ(found.at(2).expire_at, std::nullopt);
  EXPECT_EQ(found.at(3).code, StoreCode::kServerError);
  EXPECT_EQ(found.at(4).record, "old");

  EXPECT_EQ(replace({"fcap:{a}", "fcap:{b}"}), StoreCode::kOk);
  EXPECT_EQ(at("fcap:{a}"), "new");
  EXPECT_EQ(at("fcap:{b}"), "new");
  EXPECT_EQ(redis_->command({"PEXPIRETIME", "fcap:{a}"}), std::to_string(kLateMs + 5));
}

TEST_F(RedisWatchedRecords, AnEmptyRecordIsDeleted) {
  read({"fcap:{a}"});
  EXPECT_EQ(replace({"fcap:{a}"}, ""), StoreCode::kOk);
  EXPECT_EQ(redis_->command({"EXISTS", "fcap:{a}"}), "0");
}

TEST_F(RedisWatchedRecords, OneChangeOfAnyKindAndNoneIsReplaced) {
  const std::vector<std::vector<std::string>> changes = {{"APPEND", "fcap:{b}", "+"},
                                                         {"SET", "fcap:{b}", "old"},
                                                         {"PEXPIREAT", "fcap:{b}", "4000000000009"},
                                                         {"DEL", "fcap:{b}"},
                                                         {"FLUSHALL"}};
  for (const auto& change : changes) {
    read({"fcap:{a}", "fcap:{b}"});
    redis_->command(change);
    const std::string a = at("fcap:{a}");
    const std::string b = at("fcap:{b}");
    EXPECT_EQ(replace({"fcap:{a}", "fcap:{b}"}), StoreCode::kConflict) << change[0];
    EXPECT_EQ(at("fcap:{a}"), a) << change[0];
    EXPECT_EQ(at("fcap:{b}"), b) << change[0];
  }
}

TEST_F(RedisWatchedRecords, AWriteOverTheSameConnectionIsAChangeToo) {
  read({"fcap:{a}"});
  testing::RedisCall({"APPEND", "fcap:{a}", "+"}).on(*client_);
  EXPECT_EQ(replace({"fcap:{a}"}), StoreCode::kConflict);
  EXPECT_EQ(at("fcap:{a}"), "old+");
}

TEST_F(RedisWatchedRecords, AnEarlierGroupIsNotWatchedAnyMore) {
  read({"fcap:{a}"});
  read({"fcap:{b}"});
  redis_->command({"APPEND", "fcap:{a}", "+"});
  EXPECT_EQ(replace({"fcap:{b}"}), StoreCode::kOk);
}

TEST_F(RedisWatchedRecords, NothingIsReplacedOverAnotherConnection) {
  read({"fcap:{a}"});
  const std::uint64_t epoch = client_->connection_epoch();
  redis_->command({"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_TRUE(testing::wait_until(
      [&] { return client_->connection_epoch() > epoch && client_->connected(); }));
  redis_->command({"APPEND", "fcap:{a}", "+"});
  EXPECT_EQ(replace({"fcap:{a}"}), StoreCode::kUnavailable);
  EXPECT_EQ(at("fcap:{a}"), "old+");
}

TEST_F(RedisWatchedRecords, AFullMemoryRefusesTheGroup) {
  read({"fcap:{a}", "fcap:{b}"});
  redis_->command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(replace({"fcap:{a}", "fcap:{b}"}), StoreCode::kServerError);
  EXPECT_EQ(at("fcap:{a}"), "old");
}

class RedisWatchingAccount : public RedisWatchedRecords {
 protected:
  void connect_as_writer(const std::vector<std::string>& rights_less = {}) {
    std::vector<std::string> words = {"ACL", "SETUSER", "writer", "on", ">secret"};
    for (const auto& more : {testing::shipped_rights("writer"), rights_less}) {
      words.insert(words.end(), more.begin(), more.end());
    }
    ASSERT_EQ(redis_->command(words), "OK");
    RedisOptions options = testing::quick_options(redis_->address());
    options.user = "writer";
    options.password = "secret";
    connect(options);
  }
};

TEST_F(RedisWatchingAccount, TheShippedWriterMayWatch) {
  connect_as_writer();
  read({"fcap:{a}"});
  EXPECT_EQ(replace({"fcap:{a}"}), StoreCode::kOk);
  EXPECT_EQ(at("fcap:{a}"), "new");
}

TEST_F(RedisWatchingAccount, ARightThatIsMissingIsFoundOutWhileReading) {
  for (const char* const right : {"-watch", "-multi", "-exec", "-pexpiretime", "-mget"}) {
    SCOPED_TRACE(right);
    connect_as_writer({right});
    read({"fcap:{a}"}, StoreCode::kServerError);
    // Later requests on the connection are answered as ever.
    EXPECT_EQ(testing::RedisCall({"GET", "fcap:{a}"}).on(*client_).text, "old");
  }
}

}  // namespace watched_records_redis_test
}  // namespace fcap
