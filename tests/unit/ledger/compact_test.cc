#include <algorithm>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace compact_test {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::decoded;
using testing::entries_of;
using testing::from_hex;
using testing::to_hex;

constexpr Instant kNow = instant_from_ms(1'700'000'000'000);

Entry at(milliseconds before_now, std::uint32_t print, std::uint64_t campaign = 7) {
  return {.time = kNow - before_now, .campaign = campaign, .fingerprint = print};
}

CompactOptions as_of(Instant now) {
  return {.retention = days{32}, .trim_now = now};
}

// As many entries as asked for, an hour apart, the newest an hour ago.
std::vector<Entry> hourly(std::uint32_t count) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 1; i <= count; ++i) entries.push_back(at(hours{i}, i));
  return entries;
}

// Marks entries by their fingerprints.
class Marks final : public KeepPolicy {
 public:
  explicit Marks(std::set<std::uint32_t> prints) : prints_(std::move(prints)) {}
  void mark_needed(const Ledger& ledger, std::vector<bool>& keep) const override {
    ASSERT_EQ(keep.size(), ledger.size());
    for (std::size_t i = 0; i < keep.size(); ++i) {
      keep[i] = prints_.count(ledger.fingerprints()[i]) > 0;
    }
  }

 private:
  std::set<std::uint32_t> prints_;
};

std::set<std::uint32_t> prints_of(const Ledger& ledger) {
  return {ledger.fingerprints().begin(), ledger.fingerprints().end()};
}

TEST(Retain, MarksOfAnotherLengthLeaveAllEntries) {
  Ledger ledger;
  for (const Entry& entry : hourly(3)) ledger.merge(entry);
  for (const std::size_t length : {0U, 2U, 4U}) {
    ledger.retain(std::vector<bool>(length, false));
    EXPECT_EQ(ledger.size(), 3U) << length;
  }
  ledger.retain({false, true, false});
  EXPECT_EQ(ledger.size(), 1U);
}

TEST(AgeTrim, EntryExactlyRetentionOldGoes) {
  const Ledger ledger =
      decoded(testing::tail_of({at(days{32}, 1), at(days{32} - milliseconds{1}, 2)}));
  const Compacted compacted = compact(ledger, {}, as_of(kNow));
  EXPECT_EQ(compacted.expired_entries, 1U);
  EXPECT_EQ(compacted.dropped_entries, 0U);
  const Ledger left = decoded(compacted.record);
  EXPECT_EQ(prints_of(left), std::set<std::uint32_t>{2});
  EXPECT_EQ(left.complete_since(), std::nullopt);
}

TEST(AgeTrim, AClockAtTheEpochTrimsNothing) {
  const Ledger ledger = decoded(testing::tail_of({{.time = instant_from_ms(0)}}));
  EXPECT_EQ(compact(ledger, {}, as_of({})).expired_entries, 0U);
}

TEST(AgeTrim, ExtremeClocksAndRetentionsAreSafe) {
  const Ledger ledger = decoded(testing::tail_of(hourly(3)));
  for (const Instant now : {Instant::min(), Instant::max()}) {
    for (const milliseconds retention :
         {milliseconds::min(), milliseconds{0}, milliseconds::max()}) {
      const auto compacted = compact(ledger, {}, {.retention = retention, .trim_now = now});
      const bool all_gone = now == Instant::max() && retention <= milliseconds{0};
      EXPECT_EQ(compacted.expired_entries, all_gone ? 3U : 0U);
      EXPECT_EQ(compacted.record.empty(), all_gone);
    }
  }
}

TEST(AgeTrim, NothingLeftIsAnEmptyRecord) {
  const Ledger ledger = decoded(testing::tail_of({at(days{40}, 1)}));
  EXPECT_EQ(compact(ledger, {}, as_of(kNow)).record, "");
  EXPECT_EQ(compact(Ledger{}, {}, as_of(kNow)).record, "");
}

TEST(SizeTrim, NewestStayAndTheDropIsWrittenDown) {
  const Ledger ledger = decoded(testing::tail_of(hourly(100)));
  auto options = as_of(kNow);
  options.record_bytes_max = 300;
  const Compacted compacted = compact(ledger, {}, options);
  EXPECT_LE(compacted.record.size(), 300U);
  const Ledger left = decoded(compacted.record);
  const auto kept = static_cast<std::uint32_t>(left.size());
  EXPECT_EQ(compacted.dropped_entries, 100U - kept);
  EXPECT_GT(kept, 30U);
  EXPECT_EQ(left.newest(), kNow - hours{1});
  EXPECT_EQ(left.complete_since(), kNow - hours{kept + 1} + milliseconds{1});
  for (const Entry& entry : entries_of(left)) EXPECT_LE(entry.fingerprint, kept);
}

TEST(SizeTrim, MarkedEntriesStayBeforeNewerOnes) {
  const Ledger ledger = decoded(testing::tail_of(hourly(100)));
  const Marks marks({97, 99});
  auto options = as_of(kNow);
  options.record_bytes_max = 300;
  options.keep = &marks;
  const Ledger left = decoded(compact(ledger, {}, options).record);
  const auto kept = prints_of(left);
  EXPECT_TRUE(kept.count(97) > 0 && kept.count(99) > 0);
  EXPECT_TRUE(kept.count(1) > 0 && kept.count(2) > 0);
  const auto newest_dropped = static_cast<std::uint32_t>(kept.size()) - 1;
  EXPECT_EQ(kept.count(newest_dropped), 0U);
  EXPECT_EQ(left.complete_since(), kNow - hours{newest_dropped} + milliseconds{1});
}

TEST(SizeTrim, TheNewestMarkedStayWhenEvenThoseAreTooMany) {
  const Ledger ledger = decoded(testing::tail_of(hourly(100)));
  std::set<std::uint32_t> prints;
  for (std::uint32_t print = 10; print <= 100; ++print) prints.insert(print);
  const Marks marks(prints);
  auto options = as_of(kNow);
  options.record_bytes_max = 300;
  options.keep = &marks;
  const Ledger left = decoded(compact(ledger, {}, options).record);
  const auto kept = prints_of(left);
  EXPECT_EQ(*kept.begin(), 10U);
  EXPECT_EQ(*kept.rbegin(), 9U + kept.size());
  EXPECT_EQ(left.complete_since(), kNow - hours{1} + milliseconds{1});
}

TEST(SizeTrim, WhatComesBackAfterATrimLeavesTheMarkWhereItWas) {
  const auto history = hourly(100);
  auto options = as_of(kNow);
  options.record_bytes_max = 300;
  std::string record = compact(decoded(testing::tail_of(history)), {}, options).record;
  const Ledger trimmed = decoded(record);
  record += testing::tail_of(history);
  const Ledger redelivered = decoded(record);
  EXPECT_EQ(redelivered.size(), 100U);
  EXPECT_EQ(redelivered.complete_since(), trimmed.complete_since());
  EXPECT_EQ(to_hex(compact(redelivered, record, options).record),
            to_hex(compact(trimmed, {}, options).record));
}

TEST(SizeTrim, BoundHoldsAndWindowsAfterTheMarkAreCompleteForAnyHistory) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 500; ++round) {
    auto shape = testing::random_shape(random);
    if (round % 10 == 0) shape.entries = 3000;
    std::string record = testing::tail_of(random_history(random, shape));
    if (random() % 2 == 0) record += from_hex("c803010203 09021122");
    if (random() % 4 == 0) append_erased_before(shape.first, record);
    const Ledger ledger = decoded(record);
    std::set<std::uint32_t> prints;
    for (const auto print : ledger.fingerprints()) {
      if (random() % 3 == 0) prints.insert(print);
    }
    const Marks marks(prints);
    const CompactOptions options{.trim_now = {},
                                 .record_bytes_max = random() % 2000,
                                 .keep = random() % 2 == 0 ? &marks : nullptr};
    const Compacted compacted = compact(ledger, record, options);
    ASSERT_LE(compacted.record.size(), std::max<std::size_t>(options.record_bytes_max, 64));
    const Ledger left = decoded(compacted.record);
    ASSERT_EQ(left.size() + compacted.dropped_entries, ledger.size());
    ASSERT_EQ(left.complete_since().has_value(), compacted.dropped_entries > 0);
    std::vector<Entry> expected;
    std::vector<Entry> found;
    const Instant since = left.complete_since().value_or(Instant::min());
    for (const Entry& entry : entries_of(ledger)) {
      if (entry.time >= since) expected.push_back(entry);
    }
    for (const Entry& entry : entries_of(left)) {
      if (entry.time >= since) found.push_back(entry);
    }
    ASSERT_EQ(found, expected) << "round " << round;
    ASSERT_EQ(to_hex(compact(left, compacted.record, options).record), to_hex(compacted.record));
  }
}

TEST(SizeTrim, OneMoreEntryWouldNotHaveFitted) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 200; ++round) {
    auto shape = testing::random_shape(random);
    shape.first = kNow;
    const Ledger ledger = decoded(testing::tail_of(random_history(random, shape)));
    const CompactOptions options{.trim_now = {}, .record_bytes_max = 64 + random() % 1000};
    const Compacted compacted = compact(ledger, {}, options);
    if (compacted.dropped_entries == 0) continue;
    Ledger more = decoded(compacted.record);
    // Without marks the most preferred dropped entry is the first of the newest ones.
    std::optional<Entry> next;
    const auto kept = entries_of(more);
    for (const Entry& entry : entries_of(ledger)) {
      if (std::find(kept.begin(), kept.end(), entry) != kept.end()) continue;
      if (!next || entry.time > next->time) next = entry;
    }
    ASSERT_TRUE(next);
    more.merge(*next);
    ASSERT_GT(compact(more, {}, {}).record.size(), options.record_bytes_max) << "round " << round;
  }
}

TEST(Markers, CompleteSinceStaysWhileWhatWasDroppedIsInReach) {
  auto options = as_of(kNow);
  options.record_bytes_max = 64;
  const std::string record = compact(decoded(testing::tail_of(hourly(10))), {}, options).record;
  const Ledger ledger = decoded(record);
  const Instant since = *ledger.complete_since();
  const Instant newest_dropped = since - milliseconds{1};

  const auto compacted_at = [&](Instant now) {
    return decoded(compact(ledger, record, as_of(now)).record).complete_since();
  };
  EXPECT_EQ(compacted_at(newest_dropped + days{32} - milliseconds{1}), since);
  EXPECT_EQ(compacted_at(newest_dropped + days{32}), std::nullopt);
}

TEST(Markers, ErasureOutlivesEverythingThatItCouldHaveErased) {
  std::string record = testing::tail_of(hourly(5));
  append_erased_before(kNow, record);
  const Ledger ledger = decoded(record);
  EXPECT_TRUE(ledger.empty());
  const auto compacted_at = [&](Instant now) { return compact(ledger, record, as_of(now)).record; };
  EXPECT_EQ(to_hex(compacted_at(kNow)), "03060068e5cf8b01");
  EXPECT_EQ(to_hex(compacted_at(kNow + days{32} - milliseconds{1})), "03060068e5cf8b01");
  EXPECT_EQ(to_hex(compacted_at(kNow + days{32})), "");
}

TEST(Markers, ErasureStaysAsLongAsThereAreEntries) {
  std::string record = testing::tail_of({at(-days{40}, 1)});
  append_erased_before(kNow, record);
  const Compacted compacted = compact(decoded(record), record, as_of(kNow + days{41}));
  EXPECT_EQ(decoded(compacted.record).erased_before(), kNow);
}

TEST(Markers, ErasureCoversADropBeforeIt) {
  auto options = as_of(kNow);
  options.record_bytes_max = 64;
  std::string record = compact(decoded(testing::tail_of(hourly(10))), {}, options).record;
  const Instant since = *decoded(record).complete_since();
  std::string erased_less = record;
  append_erased_before(since - milliseconds{2}, erased_less);
  EXPECT_EQ(decoded(erased_less).complete_since(), since);
  append_erased_before(since - milliseconds{1}, record);
  EXPECT_EQ(decoded(record).complete_since(), std::nullopt);
}

TEST(Markers, LaterOneWins) {
  for (const bool later_first : {false, true}) {
    std::string record;
    append_erased_before(kNow + milliseconds{later_first ? 5 : 3}, record);
    append_erased_before(kNow + milliseconds{later_first ? 3 : 5}, record);
    EXPECT_EQ(decoded(record).erased_before(), kNow + milliseconds{5});
  }
}

TEST(UnknownFrames, AreCountedAndCarriedOverByteForByte) {
  const std::string first = from_hex("c8 03 010203");
  const std::string second = from_hex("08 00");
  const std::string third = from_hex("ff 01 00");
  const std::string entries = testing::tail_of(hourly(3));
  const std::string record = first + entries + second + third;
  const Ledger ledger = decoded(record);
  EXPECT_EQ(ledger.unknown_frames(), 3U);
  EXPECT_EQ(ledger.size(), 3U);
  const std::string compacted = compact(ledger, record, {}).record;
  EXPECT_EQ(to_hex(compacted), to_hex(compact(ledger, {}, {}).record + first + second + third));
  EXPECT_EQ(decoded(compacted).unknown_frames(), 3U);
}

TEST(UnknownFrames, SurviveWhenNothingElseDoes) {
  const std::string unknown = from_hex("07 02 0102");
  const std::string record = testing::tail_of({at(days{40}, 1)}) + unknown;
  EXPECT_EQ(to_hex(compact(decoded(record), record, as_of(kNow)).record), to_hex(unknown));
}

TEST(UnknownFrames, GetWhatEntriesLeaveAndNoMoreThanAQuarter) {
  const std::string entries = testing::tail_of(hourly(5));
  std::string record = entries;
  for (char i = 0; i < 10; ++i) record += from_hex("c8 14") + std::string(20, i);
  CompactOptions options;
  options.record_bytes_max = 400;
  const Compacted quarter = compact(decoded(record), record, options);
  EXPECT_EQ(quarter.dropped_entries, 0U);
  EXPECT_EQ(quarter.dropped_frames, 6U) << "four of 22 bytes are less than a quarter, five more";
  EXPECT_EQ(quarter.record.back(), 9);

  const std::size_t of_entries = compact(decoded(entries), entries, {}).record.size();
  options.record_bytes_max = of_entries + 44;
  const Compacted squeezed = compact(decoded(record), record, options);
  EXPECT_EQ(squeezed.dropped_entries, 0U);
  EXPECT_LE(squeezed.record.size(), options.record_bytes_max);
  EXPECT_EQ(decoded(squeezed.record).size(), 5U);
  EXPECT_EQ(decoded(squeezed.record).unknown_frames(), options.record_bytes_max / 4 / 22);
  EXPECT_EQ(to_hex(compact(decoded(squeezed.record), squeezed.record, options).record),
            to_hex(squeezed.record));
}

TEST(UnknownFrames, LeaveRoomForReservations) {
  const std::string entries = testing::tail_of(hourly(5));
  std::string record = entries + from_hex("c8 14") + std::string(20, 'x');
  append_reservation({.event = {.time = kNow, .campaign = 7}, .expires = kNow + milliseconds{9}},
                     record);
  CompactOptions options = as_of(kNow);
  options.record_bytes_max = compact(decoded(entries), entries, options).record.size() + 30;
  const Ledger left = decoded(compact(decoded(record), record, options).record);
  EXPECT_EQ(left.size(), 5U);
  EXPECT_EQ(left.reservations().size(), 1U);
  EXPECT_EQ(left.unknown_frames(), 0U);
}

TEST(CompactedBytes, EndWhereTheTailBegins) {
  const std::string entries = testing::tail_of(hourly(3));
  const std::string base = compact(decoded(entries), {}, {}).record;
  std::string erasure;
  append_erased_before(kNow - days{1}, erasure);
  const std::string unknown = from_hex("c8 03 010203");
  EXPECT_EQ(compacted_bytes(""), 0U);
  EXPECT_EQ(compacted_bytes(base), base.size());
  EXPECT_EQ(compacted_bytes(entries), 0U);
  EXPECT_EQ(compacted_bytes(base + entries), base.size());
  EXPECT_EQ(compacted_bytes(base + entries + unknown), base.size());
  EXPECT_EQ(compacted_bytes(base + unknown), base.size() + unknown.size());
  EXPECT_EQ(compacted_bytes(unknown + base), base.size() + unknown.size());
  EXPECT_EQ(compacted_bytes(erasure + base), base.size() + erasure.size());
  EXPECT_EQ(compacted_bytes(base + erasure), base.size());
  EXPECT_EQ(compacted_bytes(erasure + base + erasure), base.size() + erasure.size());
  EXPECT_EQ(compacted_bytes(base + base), base.size());
  EXPECT_EQ(compacted_bytes(base + entries.substr(0, 5)), 0U);
}

TEST(CompactedBytes, AreAllOfARecordWithBothMarkers) {
  auto options = as_of(kNow);
  options.record_bytes_max = 80;
  std::string record = testing::tail_of(hourly(10));
  append_erased_before(kNow - hours{9}, record);
  record = compact(decoded(record), record, options).record;
  ASSERT_TRUE(decoded(record).complete_since() && decoded(record).erased_before());
  EXPECT_EQ(compacted_bytes(record), record.size());
}

}  // namespace compact_test
}  // namespace fcap::ledger
