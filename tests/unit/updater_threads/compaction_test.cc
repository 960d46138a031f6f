#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "tests/support/seed.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/compaction/compactor.h"
#include "updater/compaction/record_compactor.h"

namespace fcap::updater {
namespace compaction_test {

using namespace std::chrono_literals;
using testing::FaultStore;
using Outcome = RecordCompactor::CompactionOutcome;

constexpr Instant kNow = instant_from_ms(1'700'000'000'000);

ledger::Entry entry(std::uint32_t number, Instant time = kNow, std::string_view campaign = "c1") {
  return {.time = time, .campaign = ledger::id_hash(campaign), .fingerprint = number};
}

std::string appended(const std::vector<ledger::Entry>& entries) {
  std::string bytes;
  ledger::append_entries(entries, bytes);
  return bytes;
}

class RecordCompaction : public ::testing::Test {
 protected:
  std::unique_ptr<RecordCompactor> make(RecordCompactor::Options options = {}) {
    options.in_flight_max = 4;
    return std::make_unique<RecordCompactor>(
        store_, options, [this] { return trim_now_; }, metrics_,
        [this](const RecordCompactor::Done& done) { outcomes_.push_back(done.outcome); });
  }
  Outcome compact(RecordCompactor& compactor, std::string_view key, bool rewrite = false) {
    compactor.start(key, rewrite);
    for (int turn = 0; turn < 10 && compactor.in_flight() > 0; ++turn) compactor.tick();
    EXPECT_EQ(compactor.in_flight(), 0U);
    return outcomes_.empty() ? Outcome::kFailed : outcomes_.back();
  }

  FaultStore store_;
  Metrics metrics_;
  std::optional<Instant> trim_now_ = kNow;
  std::vector<Outcome> outcomes_;
};

TEST_F(RecordCompaction, ATailBecomesPartOfTheBaseAndNothingIsLost) {
  std::string record = appended({entry(1), entry(2), entry(1), entry(3, kNow - 1s)});
  store_.records()["k"] = {record, kNow};
  const auto compactor = make();
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  const std::string& after = store_.records()["k"].bytes;
  EXPECT_LT(after.size(), record.size());
  EXPECT_EQ(ledger::compacted_bytes(after), after.size());
  ledger::Ledger ledger;
  ASSERT_EQ(ledger.decode(after), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.size(), 3U);
  EXPECT_EQ(metrics_.compactions.value(), 1U);
  EXPECT_EQ(metrics_.compaction_bytes_saved.value(), record.size() - after.size());
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kUnneeded);
}

TEST_F(RecordCompaction, TheExpiryIsRetentionAfterTheNewestEventAndNeverEarlier) {
  store_.records()["k"] = {appended({entry(1, kNow - 5s), entry(2)}), Instant{}};
  const auto compactor = make({.retention = 1h});
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  EXPECT_EQ(store_.records()["k"].expire_at, kNow + 1h);
}

TEST_F(RecordCompaction, ErasureMarkersKeepTheirRetention) {
  std::string record = appended({entry(1, kNow - 30min)});
  ledger::append_erased_before(kNow - 10min, record);
  store_.records()["k"] = {record, Instant{}};
  const auto compactor = make({.retention = 1h});
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  EXPECT_EQ(store_.records()["k"].expire_at, kNow - 10min + 1h);
  ledger::Ledger ledger;
  ASSERT_EQ(ledger.decode(store_.records()["k"].bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.erased_before(), kNow - 10min);
}

TEST_F(RecordCompaction, EntriesPastTheRetentionGoByTheTrimmingClockOnly) {
  const std::string record = appended({entry(1, kNow - 2h), entry(2)});
  store_.records()["k"] = {record, kNow};
  const auto compactor = make({.retention = 1h});
  ledger::Ledger ledger;

  trim_now_.reset();  // no broker has been heard yet
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  ASSERT_EQ(ledger.decode(store_.records()["k"].bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.size(), 2U);

  trim_now_ = kNow;
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  ASSERT_EQ(ledger.decode(store_.records()["k"].bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.size(), 1U);
  EXPECT_EQ(metrics_.entries_expired.value(), 1U);
}

TEST_F(RecordCompaction, OversizedRecordsAreTrimmedUnlessRulesAreStillToCome) {
  std::vector<ledger::Entry> entries;
  for (std::uint32_t i = 0; i < 500; ++i) entries.push_back(entry(i, kNow - 1ms * i));
  store_.records()["k"] = {appended(entries), kNow};
  const auto waiting = make({.record_bytes_max = 1024, .trim_without_rules = false});
  EXPECT_EQ(compact(*waiting, "k"), Outcome::kCompacted);
  EXPECT_GT(store_.records()["k"].bytes.size(), 1024U);
  EXPECT_EQ(metrics_.entries_dropped.value(), 0U);
  const auto trimming = make({.record_bytes_max = 1024});
  EXPECT_EQ(compact(*trimming, "k"), Outcome::kCompacted);
  EXPECT_LE(store_.records()["k"].bytes.size(), 1024U);
  EXPECT_GT(metrics_.entries_dropped.value(), 0U);
}

TEST_F(RecordCompaction, AlsoWhileRulesAreStillToComeRecordsHaveABound) {
  constexpr std::size_t kBound = 128;
  std::vector<ledger::Entry> entries;
  for (std::uint32_t i = 0; i < 500; ++i) entries.push_back(entry(i, kNow - 1ms * i));
  store_.records()["k"] = {appended(entries), kNow};
  const auto waiting = make({.record_bytes_max = kBound, .trim_without_rules = false});
  EXPECT_EQ(compact(*waiting, "k"), Outcome::kCompacted);
  EXPECT_LE(store_.records()["k"].bytes.size(), 16 * kBound);
  EXPECT_GT(store_.records()["k"].bytes.size(), kBound);
}

TEST_F(RecordCompaction, UnreadableRecordsAreLeftAlone) {
  store_.records()["k"] = {"\x01", kNow};
  const auto compactor = make();
  EXPECT_EQ(compact(*compactor, "k", true), Outcome::kUndecodable);
  EXPECT_EQ(store_.records()["k"].bytes, "\x01");
  EXPECT_EQ(metrics_.undecodable_records.value(), 1U);
}

TEST_F(RecordCompaction, MissingRecordsAndFailuresAreSaid) {
  const auto compactor = make();
  EXPECT_EQ(compact(*compactor, "none"), Outcome::kMissing);
  EXPECT_TRUE(store_.records().empty());
  store_.records()["k"] = {appended({entry(1)}), kNow};
  store_.next_fault = [] { return FaultStore::Fault::kLost; };
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kFailed);
  EXPECT_EQ(metrics_.compaction_failures.value(), 1U);
}

TEST_F(RecordCompaction, ACompactRecordIsRewrittenForItsExpiry) {
  store_.records()["k"] = {appended({entry(1)}), kNow};
  const auto compactor = make({.retention = 1h});
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kCompacted);
  store_.records()["k"].expire_at = Instant{};
  EXPECT_EQ(compact(*compactor, "k"), Outcome::kUnneeded);
  EXPECT_EQ(compact(*compactor, "k", true), Outcome::kCompacted);
  EXPECT_EQ(store_.records()["k"].expire_at, kNow + 1h);
}

TEST_F(RecordCompaction, WhatIsAppendedMeanwhileStaysBehindTheCompactedPart) {
  store_.immediate = false;
  store_.records()["k"] = {appended({entry(0), entry(1), entry(0)}), kNow};
  const auto compactor = make();
  compactor->start("k");
  store_.run_all();  // the read
  compactor->tick();
  const std::string tail = appended({entry(2)});
  store_.records()["k"].bytes += tail;
  store_.run_all();  // the exchange
  compactor->tick();
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0], Outcome::kCompacted);
  const std::string& after = store_.records()["k"].bytes;
  EXPECT_TRUE(after.ends_with(tail));
  EXPECT_EQ(ledger::compacted_bytes(after), after.size() - tail.size());
  ledger::Ledger ledger;
  ASSERT_EQ(ledger.decode(after), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.size(), 3U);
}

TEST_F(RecordCompaction, ARecordThatIsRewrittenIsReadAgainABoundedNumberOfTimes) {
  store_.immediate = false;
  store_.records()["k"] = {appended({entry(0)}), kNow};
  const auto compactor = make({.attempts_max = 3});
  compactor->start("k");
  std::uint32_t number = 1;
  while (compactor->in_flight() > 0 && number < 20) {
    store_.run_all();  // the read
    compactor->tick();
    std::string& bytes = store_.records()["k"].bytes;
    bytes.insert(0, appended({entry(number++)}));
    store_.run_all();  // the exchange, too late
    compactor->tick();
  }
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0], Outcome::kConflict);
  EXPECT_EQ(metrics_.compaction_conflicts.value(), 3U);
  EXPECT_EQ(number, 4U);
  ledger::Ledger ledger;
  ASSERT_EQ(ledger.decode(store_.records()["k"].bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(ledger.size(), 4U);
}

TEST_F(RecordCompaction, NothingIsLostWhateverTheInterleavingAndTheFaults) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  store_.immediate = false;
  std::map<std::string, ledger::Ledger> expected;
  const auto compactor = make();
  for (int step = 0; step < 5'000; ++step) {
    const std::string key = "k" + std::to_string(random() % 3);
    switch (random() % 4) {
      case 0: {
        const auto added =
            entry(static_cast<std::uint32_t>(random() % 300),
                  kNow - 1ms * static_cast<int>(random() % 1'000), random() % 2 == 0 ? "c1" : "c2");
        expected[key].merge(added);
        store_.records()[key].bytes += appended({added});
        break;
      }
      case 1:
        if (!compactor->full()) compactor->start(key);
        break;
      case 2:
        compactor->tick();
        break;
      default:
        if (store_.waiting() > 0) {
          const auto fault = static_cast<FaultStore::Fault>(random() % 8);
          store_.run(random() % store_.waiting(),
                     fault > FaultStore::Fault::kReplyLost ? FaultStore::Fault::kNone : fault);
        }
    }
  }
  while (compactor->in_flight() > 0) {
    store_.run_all();
    compactor->tick();
  }
  EXPECT_GT(metrics_.compactions.value(), 0U);
  for (const auto& [key, ledger] : expected) {
    ledger::Ledger found;
    ASSERT_EQ(found.decode(store_.records()[key].bytes), ledger::DecodeCode::kOk);
    const ledger::CompactOptions options{.trim_now = kNow, .record_bytes_max = SIZE_MAX};
    EXPECT_EQ(ledger::compact(found, {}, options).record,
              ledger::compact(ledger, {}, options).record)
        << key;
  }
}

class Compaction : public ::testing::Test {
 protected:
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 6'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  // As the write path does it.
  void write(Compactor& compactor, const std::string& key, std::uint32_t number) {
    struct Waiting final : StoreCompletion {
      void complete(const StoreOutcome& outcome) noexcept override {
        length = outcome.length_bytes;
      }
      std::size_t length = 0;
    } done;
    const std::string bytes = appended({entry(number)});
    store_->append(key, bytes, kNow + std::chrono::days{20'000}, Store::Deadline::max(), done);
    compactor.on_user_written(key, done.length, bytes.size());
  }
  std::string read(const std::string& key) {
    struct Waiting final : StoreCompletion {
      void complete(const StoreOutcome& outcome) noexcept override { record = outcome.record; }
      std::string record;
    } done;
    store_->get(key, Store::Deadline::max(), done);
    return done.record;
  }
  bool is_compact(const std::string& key) {
    const std::string record = read(key);
    return ledger::compacted_bytes(record) == record.size();
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  Metrics metrics_;
};

TEST_F(Compaction, AGrowingTailIsCompactedWhileTheUserIsActive) {
  Compactor compactor(
      *store_, {.quiet_after = 1h}, [] { return kNow; }, metrics_);
  compactor.start();
  for (std::uint32_t i = 0; i < 200; ++i) write(compactor, "k", i);
  EXPECT_TRUE(eventually([&] { return metrics_.compactions.value() > 0; }));
}

TEST_F(Compaction, AQuietUserIsCompacted) {
  Compactor compactor(
      *store_, {.quiet_after = 20ms}, [] { return kNow; }, metrics_);
  compactor.start();
  write(compactor, "k", 1);
  EXPECT_TRUE(eventually([&] { return is_compact("k"); }));
}

TEST_F(Compaction, ARecordThatRedisDidNotGiveIsTriedAgain) {
  FaultStore store;
  store.records()["k"] = {appended({entry(1), entry(2)}), kNow};
  std::atomic<int> refusals{3};
  store.next_fault = [&refusals] {
    return refusals-- > 0 ? FaultStore::Fault::kRefused : FaultStore::Fault::kNone;
  };
  Compactor compactor(
      store, {.quiet_after = 5ms}, [] { return kNow; }, metrics_);
  compactor.on_user_written("k", 1'000'000, 1'000'000);  // far too long: due at once
  compactor.start();
  EXPECT_TRUE(eventually([&] { return metrics_.compactions.value() == 1; }));
  EXPECT_EQ(metrics_.compaction_failures.value(), 3U);
}

TEST_F(Compaction, StoppingCompactsWhatIsRemembered) {
  Compactor compactor(
      *store_, {.quiet_after = 1h, .drain_timeout = 60s}, [] { return kNow; }, metrics_);
  compactor.start();
  for (std::uint32_t i = 0; i < 1'000; ++i) write(compactor, "k" + std::to_string(i), i);
  EXPECT_FALSE(is_compact("k7"));
  compactor.stop();
  for (std::uint32_t i = 0; i < 1'000; ++i) EXPECT_TRUE(is_compact("k" + std::to_string(i))) << i;
}

TEST_F(Compaction, StoppingWithoutADrainLeavesThemToTheSweep) {
  Compactor compactor(
      *store_, {.quiet_after = 1h, .drain_timeout = 0ms}, [] { return kNow; }, metrics_);
  compactor.start();
  write(compactor, "k", 1);
  compactor.stop();
  EXPECT_FALSE(is_compact("k"));
}

// Does not answer reads until it is told to.
class SilentStore final : public Store {
 public:
  void get(std::string_view, Deadline, StoreCompletion& done) noexcept override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&done);
    most_ = std::max(most_, waiting_.size());
  }
  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    done.complete({});
  }
  void compare_and_set(const CompareAndSet&, Deadline, StoreCompletion& done) noexcept override {
    done.complete({});
  }

  // Says of all that wait that there is no record.
  void answer() {
    std::vector<StoreCompletion*> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting_.swap(waiting);
    }
    for (StoreCompletion* done : waiting) {
      done->complete({.code = StoreCode::kNotFound});
      ++answered_;
    }
  }
  [[nodiscard]] std::size_t answered() const noexcept { return answered_; }
  // How many have waited at once, at most.
  [[nodiscard]] std::size_t most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::mutex mutex_;
  std::vector<StoreCompletion*> waiting_;  // guarded by mutex_
  std::size_t most_ = 0;                   // guarded by mutex_
  std::size_t answered_ = 0;
};

TEST_F(Compaction, TakesLittleOfASlowRedisWhileWritesWait) {
  constexpr std::size_t kRecords = 40;
  constexpr std::size_t kAllowed = 3;  // one per 300 that are written
  SilentStore store;
  Compactor compactor(
      store, {.quiet_after = 1h, .drain_timeout = 0ms}, [] { return kNow; }, metrics_);
  const auto make_due = [&] {
    for (std::size_t i = 0; i < kRecords; ++i) {
      compactor.on_user_written("k" + std::to_string(i), 1'000'000, 1'000'000);
    }
  };
  const std::vector<CompactionHook::Written> written(kAllowed * 300, {"other", 10, 10});
  compactor.set_writes_wait(true);
  make_due();
  compactor.on_users_written(written);
  compactor.start();
  EXPECT_TRUE(eventually([&] { return store.most() == kAllowed; })) << store.most();
  store.answer();
  compactor.on_users_written(written);
  EXPECT_TRUE(eventually([&] { return store.answer(), store.answered() == 2 * kAllowed; }));
  EXPECT_EQ(store.most(), kAllowed);

  compactor.set_writes_wait(false);
  EXPECT_TRUE(eventually([&] { return store.most() == kRecords - 2 * kAllowed; })) << store.most();
  store.answer();
}

TEST_F(Compaction, WhatThereIsNoRoomForIsCounted) {
  Compactor compactor(
      *store_, {.users = {.users_max = 1}, .quiet_after = 1h}, [] { return kNow; }, metrics_);
  write(compactor, "a", 1);
  write(compactor, "b", 1);
  EXPECT_EQ(metrics_.queue_overflows.value(), 1U);
}

}  // namespace compaction_test
}  // namespace fcap::updater
