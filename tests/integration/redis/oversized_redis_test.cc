// Records that are far too long, and a Redis that is full.
#include <latch>

#include <gtest/gtest.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "redis/redis_store.h"
#include "support/process.h"
#include "support/redis_test.h"
#include "support/store_calls.h"

namespace fcap {
namespace oversized_redis_test {

using testing::StoreCalls;
using testing::wait_until;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::chrono::seconds kPatience{60};

// Remembers how a read went, and how long what it read was.
class Read final : public StoreCompletion {
 public:
  explicit Read(std::latch& left) : left_(&left) {}
  void complete(const StoreOutcome& outcome) noexcept override {
    code = outcome.code;
    bytes = outcome.record.size();
    left_->count_down();
  }
  StoreCode code = StoreCode::kOk;
  std::size_t bytes = 0;

 private:
  std::latch* left_;
};

class RedisOversized : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    RedisOptions options;
    options.addresses = {redis_->address()};
    options.value_bytes_max = 64 * kMiB;  // as the updater has it
    options.stale_reset = kPatience;      // on a busy machine so much takes seconds to arrive
    auto client = redis::Client::create(options);
    ASSERT_TRUE(client.ok()) << client.status().text();
    client_ = std::move(client).value();
    store_ = redis::make_redis_store(client_);
    ASSERT_TRUE(wait_until(
        [this] { return StoreCalls(*store_).get("none").code == StoreCode::kNotFound; }));
  }

  void make(const std::string& key, std::size_t bytes) {
    redis_->command({"SETRANGE", key, std::to_string(bytes - 1), "x"});
  }

  std::shared_ptr<redis::Client> client_;
  std::unique_ptr<Store> store_;
};

TEST_F(RedisOversized, OneOfSeventyMegabytesCostsOnlyItsOwnReads) {
  make("long", 70 * kMiB);
  make("short", 100);
  const auto epoch = client_->connection_epoch();
  std::latch left(2);
  Read longer(left);
  Read shorter(left);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  store_->get("long", deadline, longer);
  store_->get("short", deadline, shorter);
  left.wait();
  EXPECT_EQ(longer.code, StoreCode::kTooLarge);
  EXPECT_EQ(shorter.code, StoreCode::kOk);
  EXPECT_EQ(shorter.bytes, 100U);
  EXPECT_EQ(client_->connection_epoch(), epoch) << "the connection was made again";
}

TEST_F(RedisOversized, ManyLargeOnesThatAreReadTogetherLeaveTheConnectionAlone) {
  constexpr std::size_t kKeys = 24;
  for (std::size_t i = 0; i < kKeys; ++i) make("k" + std::to_string(i), 6 * kMiB);
  const auto epoch = client_->connection_epoch();
  std::latch left(kKeys);
  std::vector<std::unique_ptr<Read>> reads;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (std::size_t i = 0; i < kKeys; ++i) {
    reads.push_back(std::make_unique<Read>(left));
    store_->get("k" + std::to_string(i), deadline, *reads.back());
  }
  left.wait();
  for (const auto& read : reads) {
    EXPECT_TRUE(read->code == StoreCode::kOk || read->code == StoreCode::kTooLarge);
    if (read->code == StoreCode::kOk) {
      EXPECT_EQ(read->bytes, 6 * kMiB);
    }
  }
  EXPECT_EQ(client_->connection_epoch(), epoch) << "the connection was made again";
}

TEST_F(RedisOversized, ARecordBecomesShorterAlsoInAFullRedis) {
  make("record", 4 * kMiB);
  const std::string before(4 * kMiB - 1, '\0');
  redis_->command({"CONFIG", "SET", "maxmemory", "2mb"});
  StoreCalls calls(*store_);
  const Instant at = std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::system_clock::now() + std::chrono::hours{1});
  EXPECT_EQ(calls.append("record", "y", at).code, StoreCode::kServerError) << "it is full";
  EXPECT_EQ(calls.compare_and_set("record", before + "x", before + "xy", at).code,
            StoreCode::kServerError)
      << "what grows is refused as before";
  EXPECT_EQ(calls.compare_and_set("record", before + "x", "short", at).code, StoreCode::kOk);
  EXPECT_EQ(redis_->command({"GET", "record"}), "short");
}

}  // namespace oversized_redis_test
}  // namespace fcap
