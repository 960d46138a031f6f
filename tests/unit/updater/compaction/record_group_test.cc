// Records that are compacted together.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/compaction/record_compactor.h"

namespace fcap::updater {
namespace record_group_test {

using namespace std::chrono_literals;
using testing::FaultStore;
using Outcome = RecordCompactor::CompactionOutcome;

constexpr Instant kNow = instant_from_ms(1'700'000'000'000);

std::string record_of(std::uint32_t from, std::uint32_t to) {
  std::vector<ledger::Entry> entries;
  for (std::uint32_t i = from; i < to; ++i) {
    entries.push_back({.time = kNow, .campaign = ledger::id_hash("c1"), .fingerprint = i});
  }
  std::string bytes;
  ledger::append_entries(entries, bytes);
  return bytes;
}

/// Watches the records of a FaultStore, as Redis does.
class WatchedStore final : public redis::WatchedRecords {
 public:
  explicit WatchedStore(FaultStore& store) : store_(store) {}

  void read(std::span<const std::string_view> keys, Deadline, Completion& done) noexcept override {
    ++reads;
    watched_.clear();
    if (read_code == StoreCode::kOk) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto at = store_.records().find(std::string(keys[i]));
        const bool found = at != store_.records().end();
        watched_[std::string(keys[i])] = found ? std::optional(at->second) : std::nullopt;
        done.on_record(i,
                       {.code = found ? StoreCode::kOk : StoreCode::kNotFound,
                        .record = found ? std::string_view(at->second.bytes) : std::string_view{}},
                       found ? std::optional(at->second.expire_at) : std::nullopt);
      }
    }
    done.on_done(read_code);
    if (after_read) after_read();
  }

  void replace(std::span<const Change> changes, Deadline, Completion& done) noexcept override {
    ++replaces;
    StoreCode code = replace_code;
    for (const auto& [key, record] : watched_) {
      const auto at = store_.records().find(key);
      const bool same = record.has_value() ? at != store_.records().end() && at->second == *record
                                           : at == store_.records().end();
      if (!same) code = StoreCode::kConflict;
    }
    if (code == StoreCode::kOk) {
      for (const Change& change : changes) {
        store_.records()[std::string(change.key)] = {std::string(change.desired), change.expire_at};
      }
    }
    done.on_done(code);
  }

  std::function<void()> after_read;
  StoreCode read_code = StoreCode::kOk;
  StoreCode replace_code = StoreCode::kOk;
  int reads = 0;
  int replaces = 0;

 private:
  FaultStore& store_;
  std::map<std::string, std::optional<FaultStore::Record>> watched_;
};

class RecordGroups : public ::testing::Test {
 protected:
  RecordGroups() {
    for (int i = 0; i < 3; ++i) {
      store_.records()[key(i)] = {record_of(0, 5) + record_of(3, 8), kNow + 1h};
    }
    compactor_.set_watched(&watched_);
  }
  static std::string key(int i) { return "k" + std::to_string(i); }

  std::map<std::string, Outcome> compact_all() {
    outcomes_.clear();
    for (int i = 0; i < 3; ++i) compactor_.start(key(i));
    for (int turn = 0; turn < 20 && compactor_.in_flight() > 0; ++turn) compactor_.tick();
    EXPECT_EQ(compactor_.in_flight(), 0U);
    return outcomes_;
  }
  void expect_entries(int i, std::size_t entries) {
    ledger::Ledger ledger;
    ASSERT_EQ(ledger.decode(store_.records()[key(i)].bytes), ledger::DecodeCode::kOk);
    EXPECT_EQ(ledger.size(), entries) << key(i);
  }
  [[nodiscard]] bool is_compact(int i) {
    const std::string& bytes = store_.records()[key(i)].bytes;
    return ledger::compacted_bytes(bytes) == bytes.size();
  }

  FaultStore store_;
  WatchedStore watched_{store_};
  Metrics metrics_;
  std::map<std::string, Outcome> outcomes_;
  RecordCompactor compactor_{store_,
                             {.retention = 10min},
                             [] { return kNow; },
                             metrics_,
                             [this](const RecordCompactor::Done& done) {
                               outcomes_[std::string(done.key)] = done.outcome;
                             }};
};

TEST_F(RecordGroups, AreReadAndReplacedTogether) {
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kCompacted) << key;
  EXPECT_EQ(watched_.reads, 1);
  EXPECT_EQ(watched_.replaces, 1);
  EXPECT_EQ(store_.writes(), 0U) << "nothing went by compare-and-set";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_compact(i));
    expect_entries(i, 8);
    EXPECT_EQ(store_.records()[key(i)].expire_at, kNow + 1h) << "a later expiry stays";
  }
}

TEST_F(RecordGroups, WhatIsCompactAlreadyIsNotReplaced) {
  compact_all();
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kUnneeded) << key;
  EXPECT_EQ(watched_.replaces, 1);
  store_.records().erase(key(1));
  EXPECT_EQ(compact_all().at(key(1)), Outcome::kMissing);
}

TEST_F(RecordGroups, AnAppendToOneMeanwhileSendsEachByItself) {
  watched_.after_read = [this] { store_.records()[key(1)].bytes += record_of(20, 22); };
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kCompacted) << key;
  EXPECT_EQ(watched_.replaces, 1);
  EXPECT_EQ(store_.writes(), 3U);
  expect_entries(0, 8);
  expect_entries(1, 10);
}

TEST_F(RecordGroups, ARecordThatWasRewrittenMeanwhileIsReadAgain) {
  watched_.after_read = [this] {
    store_.records()[key(1)].bytes = record_of(30, 31) + record_of(31, 32);
  };
  EXPECT_EQ(compact_all().at(key(1)), Outcome::kCompacted);
  expect_entries(1, 2);
}

TEST_F(RecordGroups, WhereWatchingIsRefusedRecordsGoOneByOne) {
  watched_.read_code = StoreCode::kServerError;
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kCompacted) << key;
  store_.records()[key(0)].bytes += record_of(40, 41);
  EXPECT_EQ(compact_all().at(key(0)), Outcome::kCompacted);
  EXPECT_EQ(watched_.reads, 1) << "it is not tried again at once";
}

TEST_F(RecordGroups, ARefusedReplacementGoesOneByOne) {
  watched_.replace_code = StoreCode::kServerError;
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kCompacted) << key;
  EXPECT_EQ(store_.writes(), 3U);
}

TEST_F(RecordGroups, WithoutAnAnswerTheyHaveFailed) {
  watched_.read_code = StoreCode::kTimeout;
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kFailed) << key;
  watched_.read_code = StoreCode::kOk;
  watched_.replace_code = StoreCode::kTimeout;
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kFailed) << key;
  EXPECT_EQ(metrics_.compaction_failures.value(), 6U);
  watched_.replace_code = StoreCode::kOk;
  for (const auto& [key, outcome] : compact_all()) EXPECT_EQ(outcome, Outcome::kCompacted) << key;
}

TEST_F(RecordGroups, IdsThatRepeatAreCountedOnceTheyAreMerged) {
  const ledger::Entry again{
      .time = kNow + 6min, .campaign = ledger::id_hash("c1"), .fingerprint = 3};
  ledger::append_entries({&again, 1}, store_.records()[key(1)].bytes);
  watched_.read_code = StoreCode::kTimeout;
  compact_all();
  watched_.read_code = StoreCode::kOk;
  watched_.replace_code = StoreCode::kTimeout;
  compact_all();
  EXPECT_EQ(metrics_.repeated_ids.value(), 0U);
  watched_.replace_code = StoreCode::kOk;
  compact_all();
  EXPECT_EQ(metrics_.repeated_ids.value(), 1U);
  compact_all();
  EXPECT_EQ(metrics_.repeated_ids.value(), 1U);
}

TEST_F(RecordGroups, WhatIsGatheredAtTheEndIsLeft) {
  compactor_.start(key(0));
  EXPECT_EQ(compactor_.in_flight(), 1U);  // and the destructor does not wait for it
}

}  // namespace record_group_test
}  // namespace fcap::updater
