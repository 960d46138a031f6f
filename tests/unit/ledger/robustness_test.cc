#include <algorithm>

#include <gtest/gtest.h>

#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace robustness_test {

using std::chrono::milliseconds;
using testing::decoded;
using testing::entries_of;
using testing::from_hex;

// Decodes bytes of any kind; what can be read must mean the same after compaction.
DecodeCode decode_and_check(std::string_view record) {
  Ledger ledger;
  const DecodeCode code = ledger.decode(record);
  if (code != DecodeCode::kOk) {
    EXPECT_TRUE(ledger.empty());
    EXPECT_TRUE(ledger.runs().empty());
    EXPECT_EQ(ledger.erased_before(), std::nullopt);
    if (code == DecodeCode::kTruncated) {
      EXPECT_EQ(compacted_bytes(record), 0U);
    }
    return code;
  }
  EXPECT_LE(compacted_bytes(record), record.size());
  const std::string compacted =
      compact(ledger, record, {.trim_now = {}, .record_bytes_max = 1U << 20U}).record;
  const Ledger again = decoded(compacted);
  EXPECT_EQ(entries_of(again), entries_of(ledger));
  EXPECT_EQ(again.complete_since(), ledger.complete_since());
  EXPECT_EQ(again.unknown_frames(), ledger.unknown_frames());
  return code;
}

std::vector<std::string> sample_records(std::mt19937_64& random) {
  std::vector<std::string> records;
  for (const std::uint64_t creatives : {0U, 3U}) {
    for (const unsigned types : {1U, 4U}) {
      testing::HistoryShape shape;
      shape.entries = 24;
      shape.campaigns = 3;
      shape.creatives = creatives;
      shape.types = types;
      std::string record = testing::tail_of(random_history(random, shape));
      append_erased_before(shape.first, record);
      record = compact(decoded(record), {}, {.trim_now = {}}).record;
      record += from_hex("c8 02 0102");
      record += from_hex("05 1b 04 eb1e45e6626c 7b68e5cf8b01 4c61213e e0930400 785ae49e8c5d");
      record += from_hex("06 11 00 eb1e45e6626c 0068e5cf8b01 0c000000");
      shape.entries = 3;
      record += testing::tail_of(random_history(random, shape));
      records.push_back(record);
    }
  }
  return records;
}

TEST(DecodeRobustness, EveryTruncationIsSafe) {
  std::mt19937_64 random(test_seed());
  for (const std::string& record : sample_records(random)) {
    std::size_t readable = 0;
    for (std::size_t length = 0; length <= record.size(); ++length) {
      // A copy of its own length, so that a sanitizer sees any read behind it.
      const std::vector<char> exact(record.begin(), record.begin() + static_cast<long>(length));
      const DecodeCode code = decode_and_check({exact.data(), exact.size()});
      ASSERT_NE(code, DecodeCode::kMalformed) << length;
      if (code == DecodeCode::kOk) ++readable;
    }
    // Nothing, marker, runs, three rare frames and three entries each end in a readable place.
    EXPECT_EQ(readable, 9U);
  }
}

TEST(DecodeRobustness, EverySingleByteCorruptionIsSafe) {
  std::mt19937_64 random(test_seed());
  for (const std::string& record : sample_records(random)) {
    std::vector<char> bytes(record.begin(), record.end());
    for (char& byte : bytes) {
      const char was = byte;
      for (int value = 0; value < 256; ++value) {
        byte = static_cast<char>(value);
        decode_and_check({bytes.data(), bytes.size()});
      }
      byte = was;
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST(DecodeRobustness, RandomBytesAreSafe) {
  std::mt19937_64 random(test_seed());
  int readable = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> bytes(1 + random() % 63);
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Small tags and lengths get further.
    if (bytes.size() > 2 && round % 2 == 0) {
      bytes[0] = static_cast<char>(1 + random() % 4);
      bytes[1] = static_cast<char>(bytes.size() - 2);
    }
    if (decode_and_check({bytes.data(), bytes.size()}) == DecodeCode::kOk) ++readable;
  }
  EXPECT_GT(readable, 0) << "nothing got as far as the checks of what was decoded";
}

TEST(DecodeRobustness, WhatIsNotARecordIsToldApart) {
  struct Case {
    const char* what;
    const char* hex;
    DecodeCode code;
  };
  const Case cases[] = {
      {"zeros", "0000", DecodeCode::kMalformed},
      {"tag alone", "01", DecodeCode::kTruncated},
      {"length cut", "0180", DecodeCode::kTruncated},
      {"length longer than need be", "018000", DecodeCode::kMalformed},
      {"length of more than 32 bits", "01ffffffff10", DecodeCode::kMalformed},
      {"length without end", "01ffffffffffff", DecodeCode::kMalformed},
      {"unknown frame, cut", "c80a00", DecodeCode::kTruncated},
      {"entry too short", "0110 00 eb1e45e6626c 7b68e5cf8b01 4c6121", DecodeCode::kMalformed},
      {"entry too long", "0112 00 eb1e45e6626c 7b68e5cf8b01 4c61213e 00", DecodeCode::kMalformed},
      {"entry without its creative", "0111 04 eb1e45e6626c 7b68e5cf8b01 4c61213e",
       DecodeCode::kMalformed},
      {"entry flag unknown", "0111 08 eb1e45e6626c 7b68e5cf8b01 4c61213e", DecodeCode::kMalformed},
      {"marker too short", "0305 0068e5cf8b", DecodeCode::kMalformed},
      {"marker too long", "0407 0068e5cf8b0100", DecodeCode::kMalformed},
      {"runs frame empty", "0200", DecodeCode::kMalformed},
      {"no runs", "0206 00 00f15365 00", DecodeCode::kMalformed},
      {"flag unknown", "0214 40 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"mixed and one type", "0215 05 00f15365 01 00 00 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"a nibble more than runs", "0214 00 00f15365 01 10 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"a type more than runs", "0215 04 00f15365 01 00 04 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"longer run than bytes", "0214 00 00f15365 01 01 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"a run of 2^32", "0219 00 00f15365 01 0f ffffffff0f eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"2^32 runs", "020b 00 00f15365 ffffffff0f 00", DecodeCode::kMalformed},
      {"a byte too many", "0215 00 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e 00",
       DecodeCode::kMalformed},
      {"creatives without a dictionary", "0214 08 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e",
       DecodeCode::kMalformed},
      {"empty dictionary", "0216 08 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e 00 00",
       DecodeCode::kMalformed},
      {"index outside of the dictionary",
       "021c 08 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e 01 785ae49e8c5d 02",
       DecodeCode::kMalformed},
      {"dictionary of 2^32", "021a 08 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e ffffffff0f 00",
       DecodeCode::kMalformed},
  };
  for (const Case& bad : cases) {
    EXPECT_EQ(decode_and_check(from_hex(bad.hex)), bad.code) << bad.what;
  }
}

TEST(DecodeRobustness, UnsortedAndRepeatedRunsAreMergedLikeAnyOther) {
  // Two entries of one identity, an earlier behind a later one, and the campaigns out of order.
  const std::string record = from_hex(
      "0236 00 00f15365 03 0100 eb1e45e6626c b65c52d3b7da eb1e45e6626c"
      "7b0000 7a0000 010000 7c0000 4c61213e 4c61213e 01000000 02000000");
  const Ledger ledger = decoded(record);
  const std::uint64_t one = 0x6c62e6451eeb;
  const std::uint64_t other = 0xdab7d3525cb6;
  const auto entry = [](std::uint64_t campaign, int ms, std::uint32_t print) {
    return Entry{.time = instant_from_ms(1'700'000'000'000 + ms),
                 .campaign = campaign,
                 .fingerprint = print};
  };
  const std::vector<Entry> expected = {entry(one, 123, 0x3e21614c), entry(one, 124, 2),
                                       entry(other, 1, 1)};
  EXPECT_EQ(entries_of(ledger), expected);
}

TEST(DecodeRobustness, ALongRunWithOneIdentityTwiceHoldsItOnce) {
  std::mt19937_64 random(test_seed());
  for (const std::uint32_t length : {2U, 8U, 24U, 25U, 100U, 3000U}) {
    std::vector<Entry> entries;
    for (std::uint32_t i = 0; i < length; ++i) {
      entries.push_back({.time = instant_from_ms(1000 + i),
                         .campaign = 1,
                         .fingerprint = static_cast<std::uint32_t>(random())});
    }
    const std::string record = compact(decoded(testing::tail_of(entries)), {},
                                       {.trim_now = {}, .record_bytes_max = 1U << 20U})
                                   .record;
    ASSERT_EQ(decoded(record).size(), length);
    // Fingerprints are the last column: the last one becomes some earlier one.
    std::string repeated = record;
    const std::size_t earlier = random() % (length - 1);
    std::copy_n(record.end() - static_cast<long>(4 * (length - earlier)), 4, repeated.end() - 4);
    const Ledger ledger = decoded(repeated);
    EXPECT_EQ(ledger.size(), length - 1) << "length " << length;
    EXPECT_EQ(ledger.times().back(), instant_from_ms(1000 + length - 1));
  }
}

TEST(DecodeRobustness, FingerprintsThatShareTheirLowBitsAreToldApart) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    entries.push_back({.time = instant_from_ms(1000 + i), .campaign = 1, .fingerprint = i << 16U});
  }
  EXPECT_EQ(entries_of(decoded(compact(decoded(testing::tail_of(entries)), {},
                                       {.trim_now = {}, .record_bytes_max = 1U << 20U})
                                   .record)),
            entries);
}

TEST(Ledger, TimesOutsideOf48BitsBecomeTheNearestWithin) {
  constexpr Instant kLatest = instant_from_ms((std::int64_t{1} << 48) - 1);
  for (const auto& [given, held] :
       {std::pair{Instant::min(), instant_from_ms(0)},
        std::pair{instant_from_ms(-1), instant_from_ms(0)},
        std::pair{kLatest + milliseconds{1}, kLatest}, std::pair{Instant::max(), kLatest}}) {
    const Entry entry{.time = given, .campaign = 1, .fingerprint = 1};
    Ledger merged;
    merged.merge(entry);
    EXPECT_EQ(merged.newest(), held);
    EXPECT_EQ(decoded(testing::tail_of({entry})).newest(), held);
    EXPECT_EQ(decoded(compact(merged, {}, {}).record).newest(), held);
    std::string erasure;
    append_erased_before(given, erasure);
    EXPECT_EQ(decoded(erasure).erased_before(), held);
  }
}

TEST(Ledger, DropAfterLeavesWhatWasKnownThen) {
  Ledger ledger;
  for (std::uint32_t i = 1; i <= 4; ++i) {
    ledger.merge({.time = instant_from_ms(i), .campaign = i / 3, .fingerprint = i});
  }
  ledger.drop_after(instant_from_ms(2));
  EXPECT_EQ(ledger.size(), 2U);
  EXPECT_EQ(ledger.runs().size(), 1U);
  EXPECT_EQ(ledger.newest(), instant_from_ms(2));
  EXPECT_EQ(ledger.erased_before(), std::nullopt);
}

TEST(Ledger, UsedAgainHoldsNothingOfTheRecordBefore) {
  std::mt19937_64 random(test_seed());
  Ledger reused;
  for (int round = 0; round < 300; ++round) {
    std::string record = testing::tail_of(random_history(random, testing::random_shape(random)));
    if (random() % 2 == 0) record = compact(decoded(record), {}, {}).record;
    if (random() % 3 == 0) append_erased_before(instant_from_ms(1'700'100'000'000), record);
    if (random() % 5 == 0) record += '\0';
    Ledger fresh;
    ASSERT_EQ(reused.decode(record), fresh.decode(record));
    ASSERT_EQ(entries_of(reused), entries_of(fresh));
    ASSERT_EQ(reused.erased_before(), fresh.erased_before());
  }
}

}  // namespace robustness_test
}  // namespace fcap::ledger
