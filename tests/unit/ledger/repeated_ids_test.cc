// Ids that a producer repeats are told from events that are delivered again.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ledger.h"

namespace fcap::ledger {
namespace repeated_ids_test {

using namespace std::chrono_literals;

constexpr Instant kNow = instant_from_ms(1'700'000'000'000);

Entry entry_of(std::uint32_t fingerprint, Instant time, EventType type = EventType::kImpression) {
  return {.time = time, .campaign = 7, .type = type, .fingerprint = fingerprint};
}

std::string appended(const std::vector<Entry>& entries) {
  std::string bytes;
  append_entries(entries, bytes);
  return bytes;
}

std::string compacted(const std::vector<Entry>& entries) {
  Ledger ledger;
  EXPECT_EQ(ledger.decode(appended(entries)), DecodeCode::kOk);
  return compact(ledger, {}, {.trim_now = {}}).record;
}

std::uint32_t repeated_in(const std::string& record) {
  Ledger ledger;
  EXPECT_EQ(ledger.decode(record), DecodeCode::kOk);
  return ledger.repeated_ids();
}

TEST(RepeatedIds, AreThoseWhoseTimesAreFurtherApartThanADeliveryExplains) {
  const Entry first = entry_of(1, kNow);
  EXPECT_EQ(repeated_in(appended({first, first})), 0U);
  EXPECT_EQ(repeated_in(appended({first, entry_of(1, kNow + 5min)})), 0U);
  EXPECT_EQ(repeated_in(appended({first, entry_of(1, kNow + 5min + 1ms)})), 1U);
  EXPECT_EQ(repeated_in(appended({first, entry_of(1, kNow - 6min)})), 1U) << "in any order";
  EXPECT_EQ(repeated_in(appended({first, entry_of(1, kNow + 6min), entry_of(1, kNow + 12min)})),
            2U);
  EXPECT_EQ(repeated_in(appended({first, entry_of(1, kNow + 6min, EventType::kClick)})), 0U)
      << "another event";
}

TEST(RepeatedIds, AreFoundBesideWhatIsCompactedAndNotAgainAfterwards) {
  for (const std::uint32_t others : {0U, 3U, 100U}) {
    std::vector<Entry> before;
    std::vector<Entry> later;
    for (std::uint32_t i = 0; i < others; ++i) {
      before.push_back(entry_of(1000 + i, kNow));
      later.push_back(entry_of(1000 + others + i, kNow + 1h));
    }
    before.push_back(entry_of(1, kNow));
    later.push_back(entry_of(1, kNow + 1h));
    const std::string record = compacted(before) + appended(later);
    EXPECT_EQ(repeated_in(record), 1U) << others;
    Ledger ledger;
    ASSERT_EQ(ledger.decode(record), DecodeCode::kOk);
    EXPECT_EQ(repeated_in(compact(ledger, record, {.trim_now = {}}).record), 0U) << others;
  }
}

}  // namespace repeated_ids_test
}  // namespace fcap::ledger
