#include "updater/pipeline/batch_writer.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "ledger/ledger.h"
#include "tests/support/seed.h"
#include "tests/unit/updater/support/fault_store.h"

namespace fcap::updater {
namespace batch_writer_test {

using testing::FaultStore;
using Fault = FaultStore::Fault;
using std::chrono::milliseconds;

constexpr std::uint64_t kSeed = 99;  // unless FCAP_TEST_SEED says another

class Hook final : public CompactionHook {
 public:
  void on_user_written(std::string_view key, std::size_t length,
                       std::size_t appended) noexcept override {
    calls.emplace_back(std::string(key), length, appended);
  }
  void set_writes_wait(bool wait) noexcept override { writes_wait = wait; }
  bool writes_wait = false;
  std::vector<std::tuple<std::string, std::size_t, std::size_t>> calls;
};

class BatchWriterTest : public ::testing::Test {
 protected:
  Batch& filled(int users, int first_user = 0) {
    Batch& batch = writer_.take();
    for (int i = 0; i < users; ++i) {
      const std::string user = "u" + std::to_string(first_user + i);
      const std::string id = "i" + std::to_string(made_++);
      events::Event event;
      event.user_id = user;
      event.campaign_id = "c";
      event.event_id = id;
      event.time = instant_from_ms(1'700'000'000'000);
      batch.take(event, {7, 100 + i}, coalescer_);
    }
    coalescer_.finish(batch.writes);
    return batch;
  }

  // Lets time pass until nothing is in flight, or a bound is met.
  std::vector<Batch*> pump_until_done(int turns_max = 1000) {
    std::vector<Batch*> done;
    for (int i = 0; i < turns_max && writer_.batches_in_flight() > 0; ++i) {
      writer_.tick(now_, done);
      now_ += milliseconds{100};
    }
    return done;
  }

  FaultStore store_;
  Hook hook_;
  Metrics metrics_;
  std::string log_;
  BatchWriter writer_{store_, &hook_, WriteOptions{}, metrics_,
                      [this](LogLevel, std::string_view text) { log_ += text; }};
  Coalescer coalescer_{{"p", milliseconds{1000}}};
  BatchWriter::Clock::time_point now_ = BatchWriter::Clock::now();
  int made_ = 0;
};

TEST_F(BatchWriterTest, ABatchIsDoneWhenAllItsWritesAre) {
  store_.immediate = false;
  writer_.submit(filled(3));
  std::vector<Batch*> done;
  store_.run(2);
  store_.run(0);
  writer_.tick(now_, done);
  EXPECT_TRUE(done.empty());
  store_.run(0);
  writer_.tick(now_, done);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(metrics_.events_written.value(), 3U);
  EXPECT_EQ(writer_.batches_in_flight(), 0U);
  ASSERT_EQ(hook_.calls.size(), 3U);
  EXPECT_EQ(std::get<0>(hook_.calls[0]), "p:{u0}");
  EXPECT_EQ(std::get<1>(hook_.calls[0]), store_.records().at("p:{u0}").bytes.size());
}

TEST_F(BatchWriterTest, CompactionIsToldWhetherWritesWait) {
  store_.immediate = false;
  writer_.submit(filled(static_cast<int>(FlightWindow::kWritesAtStart / 2)));
  EXPECT_TRUE(hook_.writes_wait);
  store_.run_all();
  EXPECT_EQ(pump_until_done().size(), 1U);
  EXPECT_FALSE(hook_.writes_wait);
}

TEST_F(BatchWriterTest, CompactionGoesOnWhileWritesFail) {
  store_.next_fault = [] { return Fault::kRefused; };  // as where memory is full
  writer_.submit(filled(static_cast<int>(FlightWindow::kWritesAtStart / 2)));
  EXPECT_TRUE(hook_.writes_wait);
  std::vector<Batch*> done;
  writer_.tick(now_, done);
  EXPECT_TRUE(writer_.failing());
  EXPECT_FALSE(hook_.writes_wait);
  store_.next_fault = {};
  EXPECT_EQ(pump_until_done().size(), 1U);
}

TEST_F(BatchWriterTest, OnlyTheWriteThatFailedIsTriedAgain) {
  int operation = 0;
  store_.next_fault = [&] { return operation++ == 1 ? Fault::kRefused : Fault::kNone; };
  writer_.submit(filled(3));
  std::vector<Batch*> done;
  writer_.tick(now_, done);
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(writer_.failing());
  writer_.tick(now_, done);  // not yet: it waits
  EXPECT_EQ(operation, 3);
  EXPECT_EQ(pump_until_done().size(), 1U);
  EXPECT_EQ(operation, 4);
  EXPECT_FALSE(writer_.failing());
  EXPECT_EQ(metrics_.write_retries.value(), 1U);
}

TEST_F(BatchWriterTest, ANewBatchOfAUsedObjectWritesEverythingAnew) {
  writer_.submit(filled(2));
  for (Batch* batch : pump_until_done()) writer_.release(*batch);
  writer_.submit(filled(2));
  EXPECT_EQ(pump_until_done().size(), 1U);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(store_.records().at("p:{u0}").bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.size(), 2U);
}

TEST_F(BatchWriterTest, WhatIsAppendedGetsItsExpiryAlsoIfItsMessagesAreNotReadAgain) {
  writer_.set_passed([](const Batch&) { return true; });
  store_.refuse_expiries = true;
  writer_.submit(filled(2));
  pump_until_done(20);
  EXPECT_EQ(writer_.batches_in_flight(), 1U);
  store_.refuse_expiries = false;
  pump_until_done();
  EXPECT_EQ(writer_.batches_in_flight(), 0U);
  for (const auto& [key, record] : store_.records()) EXPECT_GT(record.expire_at, Instant{}) << key;
}

TEST_F(BatchWriterTest, WhatIsNotAppendedIsDroppedIfItsMessagesNoLongerCount) {
  writer_.set_passed([](const Batch&) { return true; });
  store_.next_fault = [] { return Fault::kRefused; };
  writer_.submit(filled(2));
  pump_until_done();
  EXPECT_EQ(writer_.batches_in_flight(), 0U);
  EXPECT_TRUE(store_.records().empty());
}

// A writer that knows when it was reconnected.
class KnowingWriterTest : public BatchWriterTest {
 protected:
  // Writes `users` users once more; how many expiries were left alone.
  std::uint64_t write_again(int users) {
    const std::uint64_t before = store_.expiries_left();
    submit(users);
    tick();
    return store_.expiries_left() - before;
  }
  void submit(int users) {
    Batch& batch = knowing_.take();
    batch.writes.clear();
    Batch& events = filled(users);
    std::swap(batch.writes, events.writes);
    batch.events = static_cast<std::size_t>(users);
    writer_.discard(events);
    knowing_.submit(batch);
  }
  void tick() {
    std::vector<Batch*> done;
    for (int i = 0; i < 1000 && knowing_.batches_in_flight() > 0; ++i) {
      knowing_.tick(now_, done);
      now_ += milliseconds{100};
    }
    for (Batch* batch : done) knowing_.release(*batch);
  }
  std::uint64_t epoch_ = 1;
  BatchWriter knowing_{store_, &hook_, WriteOptions{}, metrics_, {}, [this] { return epoch_; }};
};

TEST_F(KnowingWriterTest, ARecordThatIsAsItWasLeftKeepsItsExpiry) {
  EXPECT_EQ(write_again(3), 0U);
  EXPECT_EQ(write_again(3), 3U);
  EXPECT_EQ(write_again(4), 3U);
}

TEST_F(KnowingWriterTest, ARecordThatAnotherHasChangedGetsItsExpiryAnew) {
  write_again(3);
  store_.records().erase("p:{u0}");
  store_.records()["p:{u1}"].bytes.resize(1);
  EXPECT_EQ(write_again(3), 1U);
  EXPECT_GT(store_.records()["p:{u0}"].expire_at, Instant{});
  EXPECT_EQ(write_again(3), 3U);
}

TEST_F(KnowingWriterTest, AfterAReconnectionNothingIsKnown) {
  write_again(3);
  ++epoch_;
  EXPECT_EQ(write_again(3), 0U);
  EXPECT_EQ(write_again(3), 3U);
}

TEST_F(KnowingWriterTest, AReconnectionWhileABatchIsUnderWayMakesItsWritesAnew) {
  write_again(2);
  store_.next_fault = [this] {
    ++epoch_;
    store_.next_fault = nullptr;
    return Fault::kNone;
  };
  // Both go out relying on what was known, and both again, looking after the expiry.
  EXPECT_EQ(write_again(2), 2U);
  EXPECT_EQ(store_.writes(), 6U);
}

TEST_F(KnowingWriterTest, AWriteThatFailedIsNotReliedUpon) {
  write_again(1);
  store_.next_fault = [this] {
    store_.next_fault = nullptr;
    return Fault::kReplyLost;
  };
  // Executed once without an answer, then with an expiry.
  EXPECT_EQ(write_again(1), 1U);
  EXPECT_EQ(store_.writes(), 3U);
  EXPECT_EQ(write_again(1), 1U);
}

TEST_F(KnowingWriterTest, WhereOnlyTheExpiryFailedNothingIsAppendedAgain) {
  store_.refuse_expiries = true;
  submit(3);
  std::vector<Batch*> done;
  for (int i = 0; i < 100; ++i) {
    knowing_.tick(now_, done);
    now_ += milliseconds{100};
  }
  EXPECT_TRUE(done.empty());
  const std::size_t bytes = store_.records().at("p:{u0}").bytes.size();
  EXPECT_NE(knowing_.trouble().find("NOPERM"), std::string::npos);
  EXPECT_EQ(knowing_.trouble().find("u0"), std::string::npos) << "it names no user";
  store_.refuse_expiries = false;
  tick();
  EXPECT_EQ(knowing_.batches_in_flight(), 0U);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(store_.records().at("p:{u0}").bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(store_.records().at("p:{u0}").bytes.size(), bytes);
  EXPECT_GT(store_.records().at("p:{u0}").expire_at, Instant{});
}

TEST_F(KnowingWriterTest, ARecordThatVanishedBeforeItsExpiryIsAppendedAgain) {
  store_.refuse_expiries = true;
  submit(1);
  std::vector<Batch*> done;
  knowing_.tick(now_, done);
  store_.records().clear();
  store_.refuse_expiries = false;
  tick();
  EXPECT_EQ(knowing_.batches_in_flight(), 0U);
  EXPECT_FALSE(store_.records().at("p:{u0}").bytes.empty());
}

TEST_F(KnowingWriterTest, ARecordThatAnotherHasBegunAgainIsAppendedAgain) {
  store_.refuse_expiries = true;
  submit(1);
  std::vector<Batch*> done;
  knowing_.tick(now_, done);
  // It expired, and a reservation began it again.
  store_.records().at("p:{u0}").bytes = "x";
  store_.refuse_expiries = false;
  tick();
  EXPECT_GT(store_.records().at("p:{u0}").bytes.size(), 1U);
}

TEST_F(KnowingWriterTest, WhatAnotherServerHasAppendedIsAppendedAgain) {
  store_.refuse_expiries = true;
  submit(1);
  std::vector<Batch*> done;
  knowing_.tick(now_, done);
  store_.records().clear();
  store_.records()["p:{u0}"].bytes = "x";
  ++epoch_;
  store_.refuse_expiries = false;
  tick();
  EXPECT_GT(store_.records().at("p:{u0}").bytes.size(), 1U);
}

TEST_F(KnowingWriterTest, AnExpiryOfAnEarlierConnectionIsNotKnownAfterARetry) {
  int operation = 0;
  store_.next_fault = [&] { return operation++ == 1 ? Fault::kRefused : Fault::kNone; };
  submit(2);
  std::vector<Batch*> done;
  knowing_.tick(now_, done);
  // The next server has the record, but not its expiry.
  ++epoch_;
  store_.records().at("p:{u0}").expire_at = Instant{};
  tick();
  EXPECT_EQ(write_again(1), 0U);
  EXPECT_GT(store_.records().at("p:{u0}").expire_at, Instant{});
}

TEST_F(BatchWriterTest, AKeyThatIsRefusedIsGivenUpAndTheRestOfItsBatchGoesOn) {
  store_.refused_key = "p:{u1}";
  store_.refusal = "WRONGTYPE Operation against a key holding the wrong kind of value";
  writer_.submit(filled(3));
  const auto done = pump_until_done();
  ASSERT_EQ(done.size(), 1U);
  ASSERT_EQ(done[0]->refused().size(), 1U);
  EXPECT_EQ(done[0]->writes.key(done[0]->refused()[0].write), "p:{u1}");
  EXPECT_EQ(done[0]->refused()[0].why, store_.refusal);
  EXPECT_NE(log_.find("partition 7, offset 101: "), std::string::npos) << log_;
  EXPECT_EQ(log_.find("u1"), std::string::npos) << log_;
  EXPECT_EQ(store_.records().size(), 2U);
  EXPECT_EQ(hook_.calls.size(), 2U);
  EXPECT_FALSE(writer_.failing());
  writer_.release(*done[0]);

  // The next time nothing waits for it.
  writer_.submit(filled(3));
  std::vector<Batch*> again;
  writer_.tick(now_, again);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0]->refused().size(), 1U);
}

TEST_F(BatchWriterTest, AKeyThatTheAccountMayNotTouchIsGivenUpOnlyWhereOthersAreTaken) {
  store_.refused_key = "p:{u0}";
  store_.refusal =
      "NOPERM this user has no permissions to access one of the keys used as arguments";
  writer_.submit(filled(1));
  EXPECT_TRUE(pump_until_done(50).empty()) << "it may be the whole account";
  writer_.submit(filled(2));
  EXPECT_EQ(pump_until_done().size(), 2U);
}

TEST_F(BatchWriterTest, WhatAServerRefusesAltogetherIsNeverGivenUp) {
  for (const char* why : {"OOM command not allowed when used memory > 'maxmemory'.",
                          "READONLY You can't write against a read only replica.",
                          "NOPERM this user has no permissions to run the 'append' command"}) {
    store_.refused_key = "p:{u0}";
    store_.refusal = why;
    writer_.submit(filled(2));
    EXPECT_TRUE(pump_until_done(50).empty()) << why;
    EXPECT_NE(writer_.trouble().find(why), std::string::npos) << writer_.trouble();
    store_.refused_key.clear();
    const auto done = pump_until_done();
    ASSERT_EQ(done.size(), 1U);
    writer_.release(*done[0]);
  }
}

TEST_F(BatchWriterTest, ABatchWithNothingToWriteIsDoneAtOnce) {
  writer_.submit(writer_.take());
  std::vector<Batch*> done;
  writer_.tick(now_, done);
  EXPECT_EQ(done.size(), 1U);
}

TEST_F(BatchWriterTest, IsFullAtItsBoundsAndNotBefore) {
  store_.immediate = false;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(writer_.full());
    writer_.submit(filled(1));
  }
  EXPECT_TRUE(writer_.full());
  store_.run_all();
  EXPECT_EQ(pump_until_done().size(), 4U);
  EXPECT_FALSE(writer_.full());
}

TEST_F(BatchWriterTest, WhateverFailsEveryEventIsWrittenInTheEnd) {
  SCOPED_TRACE(::testing::Message() << "FCAP_TEST_SEED=" << test_seed(kSeed));
  std::mt19937_64 random(test_seed(kSeed));
  store_.immediate = false;
  int written = 0;
  std::vector<Batch*> done;
  for (int turn = 0; turn < 3000; ++turn) {
    if (!writer_.full() && written < 200) {
      writer_.submit(filled(5, static_cast<int>(random() % 20)));
      ++written;
    }
    for (std::size_t runs = random() % 8; runs > 0 && store_.waiting() > 0; --runs) {
      const auto fault = random() % 10;
      store_.run(random() % store_.waiting(), fault < 6    ? Fault::kNone
                                              : fault == 6 ? Fault::kRefused
                                              : fault == 7 ? Fault::kLost
                                                           : Fault::kReplyLost);
    }
    now_ += milliseconds{50};
    done.clear();
    writer_.tick(now_, done);
    for (Batch* batch : done) writer_.release(*batch);
  }
  for (int turn = 0; turn < 100 && writer_.batches_in_flight() > 0; ++turn) {
    store_.run_all();
    for (Batch* batch : pump_until_done(100)) writer_.release(*batch);
  }
  ASSERT_EQ(writer_.batches_in_flight(), 0U);
  std::size_t entries = 0;
  ledger::Ledger found;
  for (const auto& [key, record] : store_.records()) {
    ASSERT_EQ(found.decode(record.bytes), ledger::DecodeCode::kOk);
    entries += found.size();
  }
  EXPECT_EQ(entries, static_cast<std::size_t>(written) * 5);
  EXPECT_EQ(metrics_.events_written.value(), static_cast<std::uint64_t>(written) * 5);
}

}  // namespace batch_writer_test
}  // namespace fcap::updater
