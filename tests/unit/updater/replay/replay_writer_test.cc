#include "updater/replay/replay_writer.h"

#include <cstdlib>
#include <random>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "tests/support/seed.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/replay/redis_memory.h"

namespace fcap::updater {
namespace replay_writer_test {

using testing::FaultStore;
using Fault = FaultStore::Fault;
using std::chrono::milliseconds;

constexpr std::int64_t kNowMs = 1'700'000'000'000;
constexpr std::uint64_t kSeed = 77;  // unless FCAP_TEST_SEED says another

class ReplayWriterTest : public ::testing::Test {
 protected:
  static ReplayWriteOptions options() {
    ReplayWriteOptions made;
    made.backoff_min = milliseconds{1};
    made.backoff_max = milliseconds{2};
    made.records_in_flight_max = 3;
    return made;
  }

  void add(std::string_view user, std::string_view id, std::int64_t at_ms,
           std::string_view creative = "") {
    events::Event event;
    event.user_id = user;
    event.campaign_id = "c";
    event.creative_id = creative;
    event.event_id = id;
    event.time = instant_from_ms(at_ms);
    coalescer_.add(event);
  }
  void erase(std::string_view user, std::int64_t at_ms) {
    events::Event event;
    event.kind = events::Event::Kind::kErasure;
    event.user_id = user;
    event.time = instant_from_ms(at_ms);
    coalescer_.add(event);
  }
  ReplayCounts write() {
    ReplayCounts counts;
    EXPECT_TRUE(writer_.write(coalescer_, instant_from_ms(kNowMs), {}, counts));
    return counts;
  }

  FaultStore store_;
  ReplayWriter writer_{store_, options(), {}};
  Coalescer coalescer_{{"p", std::chrono::days{32}}};
};

TEST_F(ReplayWriterTest, TheSecondTimeChangesNothing) {
  const auto events = [this] {
    for (int i = 0; i < 50; ++i) {
      add("u" + std::to_string(i % 7), "i" + std::to_string(i), kNowMs - std::int64_t{i} * 1000);
    }
  };
  events();
  const ReplayCounts first = write();
  EXPECT_EQ(first.added, 50U);
  EXPECT_EQ(first.records_changed, 7U);
  const auto records = store_.records();
  const auto writes = store_.writes();
  events();
  const ReplayCounts second = write();
  EXPECT_EQ(second.added, 0U);
  EXPECT_EQ(second.already_there, 50U);
  EXPECT_EQ(second.records_changed, 0U);
  EXPECT_EQ(store_.records(), records);
  EXPECT_EQ(store_.writes(), writes);
}

TEST_F(ReplayWriterTest, AddsOnlyWhatIsMissingAndKeepsTheExpiry) {
  std::string record;
  ledger::Entry there;
  there.time = instant_from_ms(kNowMs);
  there.campaign = ledger::id_hash("c");
  there.fingerprint = ledger::fingerprint("new");
  ledger::append_entries({&there, 1}, record);
  const Instant expiry = instant_from_ms(kNowMs) + std::chrono::days{32};
  store_.records()["p:{u}"] = {record, expiry};
  add("u", "new", kNowMs);
  add("u", "old", kNowMs - 5000);
  const ReplayCounts counts = write();
  EXPECT_EQ(counts.added, 1U);
  EXPECT_EQ(counts.already_there, 1U);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(store_.records().at("p:{u}").bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.size(), 2U);
  EXPECT_EQ(store_.records().at("p:{u}").expire_at, expiry);
}

TEST_F(ReplayWriterTest, AnEarlierCopyOfAnEventIsAlreadyThereAndALaterOneIsNot) {
  add("u", "i", kNowMs - 1000);
  (void)write();
  add("u", "i", kNowMs - 2000);
  EXPECT_EQ(write().already_there, 1U);
  add("u", "i", kNowMs - 500);
  EXPECT_EQ(write().added, 1U);
  add("u", "i", kNowMs - 500, "creative");
  EXPECT_EQ(write().added, 1U);
  add("u", "i", kNowMs - 500);
  EXPECT_EQ(write().already_there, 1U);
}

TEST_F(ReplayWriterTest, WhatWasErasedStaysErased) {
  add("u", "before", kNowMs - 5000);
  erase("u", kNowMs - 4000);
  ReplayCounts counts = write();
  EXPECT_EQ(counts.erasures_added, 1U);
  add("u", "before", kNowMs - 5000);
  add("u", "after", kNowMs - 3000);
  erase("u", kNowMs - 4000);
  counts = write();
  EXPECT_EQ(counts.erased, 1U);
  EXPECT_EQ(counts.added, 1U);
  EXPECT_EQ(counts.erasures_already_there, 1U);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(store_.records().at("p:{u}").bytes), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.size(), 1U);
}

TEST_F(ReplayWriterTest, WhatARecordHadNoRoomForIsNotPutBack) {
  ledger::Ledger many;
  for (int i = 0; i < 500; ++i) {
    ledger::Entry entry;
    entry.time = instant_from_ms(kNowMs - std::int64_t{i} * 1000);
    entry.campaign = ledger::id_hash("c");
    entry.fingerprint = ledger::fingerprint("i" + std::to_string(i));
    many.merge(entry);
  }
  ledger::CompactOptions compact;
  compact.trim_now = instant_from_ms(kNowMs);
  compact.record_bytes_max = 1024;
  const auto trimmed = ledger::compact(many, {}, compact);
  ASSERT_GT(trimmed.dropped_entries, 0U);
  store_.records()["p:{u}"].bytes = trimmed.record;
  for (int i = 0; i < 500; ++i) add("u", "i" + std::to_string(i), kNowMs - std::int64_t{i} * 1000);
  const ReplayCounts counts = write();
  EXPECT_EQ(counts.records_changed, 0U);
  EXPECT_EQ(counts.trimmed, trimmed.dropped_entries);
  EXPECT_EQ(counts.already_there + counts.trimmed, 500U);
}

TEST_F(ReplayWriterTest, AnUnreadableRecordIsLeftAlone) {
  store_.records()["p:{u}"].bytes = "\x01\x7f";
  add("u", "i", kNowMs);
  EXPECT_EQ(write().records_unreadable, 1U);
  EXPECT_EQ(store_.records()["p:{u}"].bytes, "\x01\x7f");
}

TEST_F(ReplayWriterTest, AKeyThatHoldsNoRecordIsNotWaitedFor) {
  store_.unreadable_key = "p:{u}";
  const auto write_both = [this] {
    add("u", "i", kNowMs);
    add("another", "i", kNowMs);
    std::stop_source stop;
    // Where it is read again and again, this is what ends it.
    std::size_t reads = 0;
    store_.next_fault = [stop, reads]() mutable {
      if (++reads == 30) stop.request_stop();
      return Fault::kNone;
    };
    ReplayCounts counts;
    EXPECT_TRUE(writer_.write(coalescer_, instant_from_ms(kNowMs), stop.get_token(), counts));
    EXPECT_EQ(counts.records_unreadable, 1U);
    EXPECT_EQ(counts.added + counts.already_there, 1U);
    EXPECT_EQ(counts.retries, 0U);
  };
  store_.refusal = "WRONGTYPE Operation against a key holding the wrong kind of value";
  write_both();
  store_.unreadable_code = StoreCode::kTooLarge;
  store_.refusal = "GET: the value is longer than this client reads";
  write_both();
}

TEST_F(ReplayWriterTest, ABotsRecordStaysWithinABound) {
  constexpr int kEvents = 60'000;
  constexpr std::size_t kBytesMax = 16 * kDefaultRecordBytesMax;
  for (int i = 0; i < kEvents; ++i) add("bot", "i" + std::to_string(i), kNowMs - kEvents + i);
  (void)write();
  const std::string once = store_.records().at("p:{bot}").bytes;
  EXPECT_LE(once.size(), kBytesMax);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(once), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.newest(), instant_from_ms(kNowMs - 1));
  EXPECT_TRUE(found.complete_since().has_value());
  for (int i = 0; i < kEvents; ++i) add("bot", "i" + std::to_string(i), kNowMs - kEvents + i);
  EXPECT_EQ(write().records_changed, 0U);
  EXPECT_EQ(store_.records().at("p:{bot}").bytes, once);
}

TEST_F(ReplayWriterTest, FaultsAreTriedAgainAndCountedOnce) {
  SCOPED_TRACE(::testing::Message() << "FCAP_TEST_SEED=" << test_seed(kSeed));
  std::mt19937_64 random(test_seed(kSeed));
  store_.next_fault = [&] {
    switch (random() % 12) {
      case 0:
        return Fault::kRefused;
      case 1:
        return Fault::kLost;
      case 2:
        return Fault::kReplyLost;
      default:
        return Fault::kNone;
    }
  };
  for (int i = 0; i < 300; ++i) {
    add("u" + std::to_string(i % 40), "i" + std::to_string(i), kNowMs - std::int64_t{i} * 1000);
  }
  const ReplayCounts counts = write();
  EXPECT_GT(counts.retries, 0U);
  EXPECT_EQ(counts.added, 300U);
  EXPECT_EQ(counts.already_there, 0U);
  std::size_t entries = 0;
  ledger::Ledger found;
  for (const auto& [key, record] : store_.records()) {
    ASSERT_EQ(found.decode(record.bytes), ledger::DecodeCode::kOk);
    entries += found.size();
  }
  EXPECT_EQ(entries, 300U);
}

TEST_F(ReplayWriterTest, StopsBetweenAttempts) {
  store_.next_fault = [] { return Fault::kLost; };
  std::stop_source stop;
  stop.request_stop();
  add("u", "i", kNowMs);
  ReplayCounts counts;
  EXPECT_FALSE(writer_.write(coalescer_, instant_from_ms(kNowMs), stop.get_token(), counts));
  EXPECT_EQ(counts.added, 0U);
}

TEST(RedisMemory, ReadsTheServersWords) {
  const auto memory = parse_memory_info(
      "# Memory\r\nused_memory:1050000\r\nused_memory_human:1.00M\r\nmaxmemory:2000000\r\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->used_bytes, 1'050'000U);
  EXPECT_FALSE(parse_memory_info("").has_value());
  EXPECT_FALSE(parse_memory_info("used_memory_rss:5").has_value());
}

}  // namespace replay_writer_test
}  // namespace fcap::updater
