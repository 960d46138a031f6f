#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "ledger/ids.h"
#include "test_paths.h"
#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace golden_test {

using std::chrono::milliseconds;
using testing::decoded;
using testing::entries_of;
using testing::from_hex;
using testing::to_hex;

constexpr Instant kStart = instant_from_ms(1'700'000'000'123);

Entry event(std::string_view campaign, std::string_view creative, EventType type,
            std::string_view event_id, milliseconds after) {
  return {.time = kStart + after,
          .campaign = id_hash(campaign),
          .creative = id_hash(creative),
          .type = type,
          .fingerprint = fingerprint(event_id)};
}

Entry impression() {
  return event("c456", "", EventType::kImpression, "imp-1", milliseconds{0});
}

std::vector<Entry> mixed_history() {
  using std::chrono::days;
  using std::chrono::hours;
  using std::chrono::seconds;
  return {event("c456", "cr9", EventType::kImpression, "imp-1", milliseconds{0}),
          event("c456", "", EventType::kImpression, "imp-2", hours{1}),
          event("c456", "cr9", EventType::kClick, "imp-2", hours{1} + seconds{5}),
          event("c457", "", EventType::kConversion, "imp-3", days{30})};
}

// Twenty entries of one campaign, a millisecond apart.
std::vector<Entry> long_run() {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < 20; ++i) {
    Entry entry = impression();
    entry.time += milliseconds{i};
    entry.fingerprint = i + 1;
    entries.push_back(entry);
  }
  return entries;
}

struct Golden {
  const char* what;
  std::vector<Entry> entries;
  const char* appended;   // empty: not shown
  const char* compacted;  // as much of it as is shown
  std::size_t compacted_bytes;
};

std::vector<Golden> golden_records() {
  return {
      {"an impression",
       {impression()},
       "0111 00 eb1e45e6626c 7b68e5cf8b01 4c61213e",
       "0214 00 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e",
       22},
      {"types and creatives", mixed_history(),
       "0117 04 eb1e45e6626c 7b68e5cf8b01 4c61213e 785ae49e8c5d",
       "0246 1c 00f15365 03 0100 34 eb1e45e6626c eb1e45e6626c b65c52d3b7da"
       "7b000000 fbee3600 83023700 7bc87e9a 4c61213e b6a92e9c b6a92e9c e0107a71"
       "01 785ae49e8c5d 01 00 01 00",
       72},
      {"a run of twenty", long_run(), "", "029a01 00 00f15365 01 0f 04 eb1e45e6626c 7b0000 7c0000",
       157},
  };
}

std::string whole_file_without_space(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at) {
    if (*at != ' ' && *at != '\n') text.push_back(*at);
  }
  return text;
}

TEST(GoldenIds, HashesNeverChange) {
  struct Vector {
    std::string id;
    std::uint64_t hash;
    std::uint32_t fingerprint;
  };
  const Vector vectors[] = {
      {"", 0, 0x38d394c2},
      {"a", 0x32b61e964e1f, 0x1e964e1f},
      {"c456", 0x6c62e6451eeb, 0xe6451eeb},
      {"cr9", 0x5d8c9ee45a78, 0x9ee45a78},
      {"imp-1", 0x21423e21614c, 0x3e21614c},
      {"4f5a1e0c-7d1b-4b6e-9a51-0c5a3f3f9d10", 0xa0d89dc274ed, 0x9dc274ed},
      {std::string(kIdBytesMax, 'x'), 0x5738849baec9, 0x849baec9},
  };
  for (const auto& vector : vectors) {
    EXPECT_EQ(id_hash(vector.id), vector.hash) << vector.id;
    EXPECT_EQ(fingerprint(vector.id), vector.fingerprint) << vector.id;
  }
}

TEST(GoldenRecord, AppendedBytesNeverChange) {
  for (const Golden& golden : golden_records()) {
    const std::string appended = testing::tail_of(golden.entries);
    const std::string shown = from_hex(golden.appended);
    EXPECT_EQ(to_hex(appended.substr(0, shown.size())), to_hex(shown)) << golden.what;
  }
}

TEST(GoldenRecord, CompactedBytesNeverChange) {
  for (const Golden& golden : golden_records()) {
    const Ledger ledger = decoded(testing::tail_of(golden.entries));
    const std::string compacted = compact(ledger, {}, {}).record;
    const std::string shown = from_hex(golden.compacted);
    EXPECT_EQ(to_hex(compacted.substr(0, shown.size())), to_hex(shown)) << golden.what;
    EXPECT_EQ(compacted.size(), golden.compacted_bytes) << golden.what;
    EXPECT_EQ(entries_of(decoded(compacted)), golden.entries) << golden.what;
  }
}

TEST(GoldenRecord, MarkersComeFirstAndNeverChange) {
  const std::string record = from_hex("0306 0068e5cf8b01 0406 7b68e5cf8b01") +
                             from_hex("0214 00 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e");
  const Ledger ledger = decoded(record);
  EXPECT_EQ(ledger.erased_before(), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(ledger.complete_since(), kStart);
  EXPECT_EQ(entries_of(ledger), std::vector{impression()});
  EXPECT_EQ(to_hex(compact(ledger, {}, {}).record), to_hex(record));

  std::string marker;
  append_erased_before(instant_from_ms(1'700'000'000'000), marker);
  EXPECT_EQ(to_hex(marker), "03060068e5cf8b01");
}

constexpr const char* kGoldenReservation =
    "051b 04 eb1e45e6626c 7b68e5cf8b01 4c61213e e0930400 785ae49e8c5d";
constexpr const char* kGoldenReleased = "0515 08 eb1e45e6626c 7b68e5cf8b01 4c61213e e0930400";

TEST(GoldenRecord, ReservationsNeverChange) {
  Reservation expected{
      .event = mixed_history()[0], .expires = kStart + std::chrono::minutes{5}, .released = false};
  const std::string record = from_hex(kGoldenReservation);
  const Ledger ledger = decoded(record);
  ASSERT_EQ(ledger.reservations().size(), 1U);
  EXPECT_EQ(ledger.reservations()[0], expected);
  EXPECT_EQ(to_hex(compact(ledger, record, {}).record), to_hex(record));

  expected.event = impression();
  expected.released = true;
  const Ledger released = decoded(from_hex(kGoldenReleased));
  ASSERT_EQ(released.reservations().size(), 1U);
  EXPECT_EQ(released.reservations()[0], expected);
}

// Their numbers were meant for other frames before the first release.
TEST(GoldenRecord, TheTagsSixAndSevenStayUnknown) {
  for (const char* const hex : {"0611 00 eb1e45e6626c 0068e5cf8b01 0c000000", "0702 0102"}) {
    const std::string record = from_hex(hex);
    const Ledger ledger = decoded(record);
    EXPECT_EQ(ledger.unknown_frames(), 1U);
    EXPECT_EQ(to_hex(compact(ledger, record, {}).record), to_hex(record));
  }
}

TEST(GoldenRecord, DocumentationShowsTheseBytes) {
  const std::string text =
      whole_file_without_space(std::string(FCAP_SOURCE_DIR) + "/docs/ledger-format.md");
  ASSERT_FALSE(text.empty());
  for (const char* const shown : {kGoldenReservation, kGoldenReleased}) {
    EXPECT_NE(text.find(to_hex(from_hex(shown))), std::string::npos) << shown;
  }
  for (const Golden& golden : golden_records()) {
    EXPECT_NE(text.find(to_hex(from_hex(golden.appended))), std::string::npos) << golden.what;
    EXPECT_NE(text.find(to_hex(from_hex(golden.compacted))), std::string::npos) << golden.what;
  }
}

TEST(RecordSize, TenCampaignsOfThreeImpressionsAre314BytesWhateverTheirTimes) {
  std::mt19937_64 random(test_seed());
  const auto month_ms = static_cast<std::uint64_t>(milliseconds(std::chrono::days{32}).count());
  for (int round = 0; round < 200; ++round) {
    std::vector<Entry> entries;
    const Instant first = instant_from_ms(static_cast<std::int64_t>(random() % 4'000'000'000'000));
    for (std::uint64_t campaign = 1; campaign <= 10; ++campaign) {
      for (int i = 0; i < 3; ++i) {
        entries.push_back({.time = first + milliseconds(random() % (month_ms + 1)),
                           .campaign = campaign << 40U,
                           .fingerprint = static_cast<std::uint32_t>(random())});
      }
    }
    entries.front().time = first;
    entries.back().time = first + milliseconds(month_ms);
    const Ledger ledger = decoded(testing::tail_of(entries));
    ASSERT_EQ(compact(ledger, {}, {}).record.size(), 314U);
  }
}

TEST(RecordSize, OneSessionTakesThreeByteTimes) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < 30; ++i) {
    entries.push_back(
        {.time = kStart + std::chrono::minutes{9} * i, .campaign = 1 + i % 10, .fingerprint = i});
  }
  EXPECT_EQ(compact(decoded(testing::tail_of(entries)), {}, {}).record.size(), 314U - 30U);
}

}  // namespace golden_test
}  // namespace fcap::ledger
