#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "ledger/encode_runs.h"
#include "ledger/ids.h"
#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace reservation_test {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::decoded;
using testing::to_hex;

constexpr Instant kReserved = instant_from_ms(1'700'000'000'123);

Reservation reservation(std::uint64_t campaign = 7, std::uint32_t print = 1) {
  return {.event = {.time = kReserved,
                    .campaign = campaign,
                    .creative = 0,
                    .type = EventType::kImpression,
                    .fingerprint = print},
          .expires = kReserved + minutes{5},
          .released = false};
}

std::string record_of(const std::vector<Reservation>& reservations) {
  std::string record;
  for (const Reservation& each : reservations) append_reservation(each, record);
  return record;
}

std::vector<Reservation> reservations_of(const Ledger& ledger) {
  return {ledger.reservations().begin(), ledger.reservations().end()};
}

CompactOptions as_of(Instant now) {
  CompactOptions options;
  options.trim_now = now;
  return options;
}

TEST(Reservations, AreReadAndWrittenByteForByte) {
  Reservation other = reservation(9, 2);
  other.event.creative = 5;
  other.event.type = EventType::kClick;
  other.released = true;
  const std::vector<Reservation> all{reservation(), other};
  const std::string record = record_of(all);
  const Ledger ledger = decoded(record);
  EXPECT_EQ(reservations_of(ledger), all);
  EXPECT_TRUE(ledger.empty()) << "they are no entries";
  EXPECT_EQ(ledger.unknown_frames(), 0U);
  EXPECT_EQ(to_hex(compact(ledger, record, as_of(kReserved)).record), to_hex(record));
}

TEST(Reservations, CopiesOfOneIdentityMergeInAnyOrder) {
  Reservation later = reservation();
  later.event.time += milliseconds{3};
  later.expires += minutes{1};
  Reservation released = reservation();
  released.event.creative = 11;
  released.released = true;
  released.expires -= minutes{2};
  Reservation merged = later;
  merged.released = true;
  std::vector<Reservation> copies{reservation(), later, released, reservation(8)};
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 24; ++round) {
    std::shuffle(copies.begin(), copies.end(), random);
    EXPECT_EQ(reservations_of(decoded(record_of(copies))), (std::vector{merged, reservation(8)}));
    Ledger in_turn;
    for (const Reservation& copy : copies) in_turn.merge(decoded(record_of({copy, copy})));
    EXPECT_EQ(reservations_of(in_turn), (std::vector{merged, reservation(8)}));
  }
}

TEST(Reservations, StayInARecordUntilTheyAreOver) {
  const auto left_at = [](const Reservation& each, Instant now) {
    const std::string record = record_of({each});
    return compact(decoded(record), record, as_of(now)).record == record;
  };
  const Reservation live = reservation();
  EXPECT_TRUE(left_at(live, live.expires - milliseconds{1}));
  EXPECT_FALSE(left_at(live, live.expires));
  Reservation released = live;
  released.released = true;
  EXPECT_TRUE(left_at(released, live.expires + hours{1})) << "a copy may still arrive";
  EXPECT_FALSE(left_at(released, kReserved + days{2}));
}

TEST(Reservations, NoEntryGoesForThem) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < 30; ++i) {
    entries.push_back({.time = kReserved + milliseconds{i}, .campaign = 3, .fingerprint = i});
  }
  std::vector<Reservation> reserved;
  for (std::uint32_t i = 0; i < 10; ++i) {
    reserved.push_back(reservation(100 + i, i));
    reserved.back().expires += minutes{i};
  }
  const std::string tail = testing::tail_of(entries);
  const std::string record = tail + record_of(reserved);
  CompactOptions options = as_of(kReserved);
  options.record_bytes_max = compact(decoded(tail), tail, options).record.size() + 3 * 23 + 5;
  const Compacted compacted = compact(decoded(record), record, options);
  EXPECT_EQ(compacted.dropped_entries, 0U);
  EXPECT_EQ(compacted.dropped_frames, 7U);
  const Ledger left = decoded(compacted.record);
  EXPECT_EQ(left.size(), 30U);
  EXPECT_EQ(reservations_of(left), (std::vector<Reservation>(reserved.end() - 3, reserved.end())));
  EXPECT_EQ(compact(left, compacted.record, options).record, compacted.record);
}

TEST(Reservations, AnErasureTakesThemToo) {
  std::string record = record_of({reservation()});
  append_erased_before(kReserved - milliseconds{1}, record);
  EXPECT_EQ(decoded(record).reservations().size(), 1U);
  append_erased_before(kReserved, record);
  EXPECT_EQ(decoded(record).reservations().size(), 0U);
}

TEST(Reservations, WhatIsNotAsDescribedIsMalformed) {
  const std::string record = record_of({reservation()});
  Ledger ledger;
  for (const char flags : {'\x10', '\x04', '\x80'}) {
    std::string wrong = record;
    wrong[2] = flags;
    EXPECT_EQ(ledger.decode(wrong), DecodeCode::kMalformed) << static_cast<int>(flags);
    EXPECT_TRUE(ledger.reservations().empty());
  }
}

}  // namespace reservation_test
}  // namespace fcap::ledger
