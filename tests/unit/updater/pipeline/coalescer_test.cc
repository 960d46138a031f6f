#include "updater/pipeline/coalescer.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"

namespace fcap::updater {
namespace coalescer_test {

using std::chrono::milliseconds;

events::Event seen(std::string_view user, std::string_view campaign, std::string_view id,
                   std::int64_t at_ms) {
  events::Event event;
  event.user_id = user;
  event.campaign_id = campaign;
  event.event_id = id;
  event.time = instant_from_ms(at_ms);
  return event;
}

TEST(Coalescer, MakesOneWriteOfAllEventsOfAUser) {
  Coalescer coalescer({"fcap", milliseconds{1000}});
  coalescer.add(seen("ann", "c1", "i1", 5000));
  coalescer.add(seen("bob", "c1", "i2", 6000));
  coalescer.add(seen("ann", "c2", "i3", 4000));
  WriteSet writes;
  coalescer.finish(writes);
  ASSERT_EQ(writes.size(), 2U);
  EXPECT_EQ(writes.key(0), "fcap:{ann}");
  EXPECT_EQ(writes.key(1), "fcap:{bob}");
  ledger::Ledger ann;
  ASSERT_EQ(ann.decode(writes.bytes(0)), ledger::DecodeCode::kOk);
  EXPECT_EQ(ann.size(), 2U);
  // The newest event and the retention.
  EXPECT_EQ(writes.expire_at(0), instant_from_ms(6000));
  EXPECT_EQ(writes.expire_at(1), instant_from_ms(7000));
  EXPECT_EQ(writes.newest(), instant_from_ms(6000));
}

TEST(Coalescer, EntriesCarryTheHashesOfTheirIds) {
  Coalescer coalescer({"p", milliseconds{1000}});
  events::Event event = seen("u", "camp", "imp", 123);
  event.creative_id = "creative";
  event.type = EventType::kClick;
  coalescer.add(event);
  WriteSet writes;
  coalescer.finish(writes);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(writes.bytes(0)), ledger::DecodeCode::kOk);
  ASSERT_EQ(found.size(), 1U);
  const ledger::Entry entry = found.entry(found.runs()[0], 0);
  EXPECT_EQ(entry.campaign, ledger::id_hash("camp"));
  EXPECT_EQ(entry.creative, ledger::id_hash("creative"));
  EXPECT_EQ(entry.fingerprint, ledger::fingerprint("imp"));
  EXPECT_EQ(entry.type, EventType::kClick);
  EXPECT_EQ(entry.time, instant_from_ms(123));
}

TEST(Coalescer, AnErasureLeavesItsMarkerAndOutlivesWhatItErases) {
  Coalescer coalescer({"p", milliseconds{1000}});
  coalescer.add(seen("u", "c", "before", 100));
  events::Event erasure = seen("u", "", "e", 200);
  erasure.kind = events::Event::Kind::kErasure;
  coalescer.add(erasure);
  coalescer.add(seen("u", "c", "after", 150'000));
  WriteSet writes;
  coalescer.finish(writes);
  ledger::Ledger found;
  ASSERT_EQ(found.decode(writes.bytes(0)), ledger::DecodeCode::kOk);
  EXPECT_EQ(found.erased_before(), instant_from_ms(200));
  EXPECT_EQ(found.size(), 1U);

  coalescer.add(erasure);
  coalescer.finish(writes);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(writes.expire_at(0), instant_from_ms(1200));
}

TEST(Coalescer, StartsAnewAfterEachBatch) {
  Coalescer coalescer({"p", milliseconds{1}});
  WriteSet writes;
  coalescer.add(seen("u", "c", "1", 1));
  coalescer.finish(writes);
  coalescer.add(seen("v", "c", "2", 2));
  coalescer.finish(writes);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(writes.key(0), "p:{v}");
  coalescer.finish(writes);
  EXPECT_EQ(writes.size(), 0U);
  EXPECT_EQ(writes.total_bytes(), 0U);
}

TEST(Coalescer, KeepsManyUsersApart) {
  Coalescer coalescer({"p", milliseconds{1}});
  constexpr int kUsers = 20'000;  // several times the table's first size
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kUsers; ++i) {
      coalescer.add(seen("user-" + std::to_string(i), "c", std::to_string(round), round + 1));
    }
  }
  WriteSet writes;
  coalescer.finish(writes);
  ASSERT_EQ(writes.size(), static_cast<std::size_t>(kUsers));
  ledger::Ledger found;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    ASSERT_EQ(writes.key(i), fmt::format("p:{{user-{}}}", i));
    ASSERT_EQ(found.decode(writes.bytes(i)), ledger::DecodeCode::kOk);
    ASSERT_EQ(found.size(), 2U);
  }
}

}  // namespace coalescer_test
}  // namespace fcap::updater
