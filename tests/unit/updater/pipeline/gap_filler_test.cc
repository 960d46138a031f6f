// What becomes of a gap's messages. That whole gaps are filled, whatever happens, is the model's.
#include "updater/pipeline/gap_filler.h"

#include <deque>

#include <fmt/format.h>

#include "events/event_decoder.h"
#include "ledger/ledger.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace gap_filler_test {

using std::chrono::milliseconds;
using testing::FaultStore;

constexpr Instant kNewest = instant_from_ms(1'700'000'000'000);

// A log that gives what it is told to.
class ToldLog final : public GapLog {
 public:
  void read(std::uint64_t ticket, std::int32_t, std::int64_t from, std::int64_t to) override {
    asked.push_back({from, to});
    ticket_ = ticket;
  }
  void stop(std::int32_t) override {}
  std::optional<Chunk> next_chunk(std::size_t messages_max) override {
    if (chunks.empty()) return std::nullopt;
    std::optional<Chunk> chunk = take_part(chunks.front(), messages_max);
    if (!chunk) {
      chunk = std::move(chunks.front());
      chunks.pop_front();
    }
    chunk->ticket = ticket_;
    return chunk;
  }
  // One message for each payload, from offset 10 on; the last ones of the stretch.
  void tell(const std::vector<std::string>& payloads) {
    auto owner = std::make_shared<std::vector<std::string>>(payloads);
    Chunk chunk{.owner = owner, .end = true};
    for (std::size_t i = 0; i < owner->size(); ++i) {
      const auto offset = 10 + static_cast<std::int64_t>(i);
      chunk.messages.push_back({{.offset = offset, .payload = (*owner)[i]}});
    }
    chunks.push_back(std::move(chunk));
  }

  std::vector<Gap> asked;
  std::deque<Chunk> chunks;

 private:
  std::uint64_t ticket_ = 0;
};

class GapFillerTest : public testing::PartitionSetFixture {
 protected:
  explicit GapFillerTest(const WriteOptions& write = {})
      : writer_(store_, nullptr, write, metrics_, {}, [this] { return epoch_; }) {}

  void SetUp() override {
    store_.records()[key(0)].bytes = "4 500 gaps=10-20";
    log_.commits[0] = 500;
    std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
    partitions_.assign(at);
    tick();
    tick();
    ASSERT_EQ(missing(), 10);
  }

  static MarkOptions with_gaps() {
    MarkOptions marks = options();
    marks.gap_min = 5;
    return marks;
  }
  static std::string event(std::string_view user, std::string_view id) {
    return fmt::format(R"({{"user_id":"{}","campaign_id":"c","timestamp":{},"imp_id":"{}"}})", user,
                       to_ms(kNewest), id);
  }
  void tick() {
    now_ += milliseconds{1000};
    std::vector<Batch*> done;
    writer_.tick(now_, done);
    for (Batch* batch : done) {
      for (const Batch::Refused& refused : batch->refused()) {
        filler_.await_letter(*batch, batch->positions[refused.write].offset);
      }
      filler_.written(*batch);
      writer_.release(*batch);
    }
    partitions_.tick(now_, kNewest);
    filler_.tick(now_, true);
  }
  void turns() {
    for (int i = 0; i < 8; ++i) tick();
  }
  [[nodiscard]] std::int64_t missing() const { return partitions_.recovery().offsets_missing(); }
  [[nodiscard]] bool was_said(std::string_view text) const {
    return std::ranges::any_of(partitions_said_, [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  // Each of another user's.
  void tell_users(int from, int to) {
    std::vector<std::string> payloads;
    for (int i = from; i < to; ++i) payloads.push_back(event(fmt::format("u{}", i), "1"));
    told_.tell(payloads);
    told_.chunks.back().end = false;
  }
  // What has been sent is answered, with these many operations under way at most.
  std::size_t most_under_way(int rounds) {
    std::size_t most = 0;
    for (int i = 0; i < rounds; ++i) {
      filler_.tick(now_, true);
      most = std::max(most, store_.waiting());
      store_.run_all();
      std::vector<Batch*> done;
      writer_.tick(now_, done);
      for (Batch* batch : done) {
        if (batch->gap_ticket != 0) filler_.written(*batch);
        writer_.release(*batch);
      }
    }
    return most;
  }
  void write_live(const char* id, FaultStore::Fault fault) {
    Coalescer events({"p", std::chrono::days{32}});
    const std::string payload = event("live", id);
    ASSERT_TRUE(intake_.decode(payload));
    LeftOut left_out;
    intake_.sort_events(
        {kNewest, kNewest}, left_out, [&](const events::Event& live) { events.add(live); },
        [](const events::Rejected&) {});
    ASSERT_EQ(events.events(), 1U);
    Batch& batch = writer_.take();
    events.finish(batch.writes);
    writer_.submit(batch);
    store_.run(store_.waiting() - 1, fault);
    std::vector<Batch*> done;
    writer_.tick(PartitionSet::Clock::now(), done);
    for (Batch* written : done) writer_.release(*written);
  }
  [[nodiscard]] std::size_t entries(const std::string& user) {
    ledger::Ledger found;
    EXPECT_EQ(found.decode(store_.records()["p:{" + user + "}"].bytes), ledger::DecodeCode::kOk);
    return found.fingerprints().size();
  }

  std::vector<std::string> partitions_said_;
  PartitionSet partitions_{
      store_,   [this] { return epoch_; },
      log_,     with_gaps(),
      metrics_, [this](LogLevel, std::string_view text) { partitions_said_.emplace_back(text); }};
  BatchWriter writer_;
  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  Intake intake_{*decoder_, {}};
  ToldLog told_;
  std::vector<std::int64_t> rejected_;
  std::vector<Gap> filled_;
  std::optional<Instant> newest_;
  std::vector<std::string> said_;
  GapFiller filler_{
      {.records = {"p", std::chrono::days{32}}},
      {.partitions = &partitions_,
       .writer = &writer_,
       .store = &store_,
       .log = &told_,
       .intake = &intake_,
       .clocks =
           [] {
             return IntakeClocks{kNewest, kNewest};
           },
       .reject = [this](std::int32_t, const GapLog::GapMessage& message,
                        const events::Rejected&) { rejected_.push_back(message.what.offset); },
       .report = [this](LogLevel, std::string_view text) { said_.emplace_back(text); },
       .filled =
           [this](const GapPiece& piece, std::optional<Instant> newest) {
             filled_.push_back({piece.from, piece.to});
             newest_ = newest;
           }},
      metrics_};
};

TEST_F(GapFillerTest, WritesWhatIsMissingAndTheGapIsGone) {
  told_.tell({event("a", "1"), event("b", "2"), event("a", "3")});
  turns();
  EXPECT_EQ(told_.asked, (std::vector<Gap>{{10, 20}}));
  EXPECT_EQ(entries("a"), 2U);
  EXPECT_EQ(entries("b"), 1U);
  EXPECT_EQ(missing(), 0);
  const auto mark = decode_mark(store_.records()[key(0)].bytes);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->position, 500);
  EXPECT_TRUE(mark->gaps.empty());
  EXPECT_EQ(mark->log.last, (LogPoint{10, -1, hash_message("", event("a", "1"))}));
}

TEST_F(GapFillerTest, WhatIsMissingIsUnknownUntilTheMarkHasBeenCompared) {
  EXPECT_EQ(metrics_.gap_offsets.value(), 10);
  told_.tell({event("a", "1")});
  turns();
  EXPECT_EQ(metrics_.gap_offsets.value(), 0);
  store_.records()[key(1)].bytes = "4 500";
  log_.commits[1] = 500;
  std::vector<PartitionOffset> at{{1, PartitionOffset::kNone}};
  partitions_.assign(at);
  filler_.tick(now_, true);
  EXPECT_EQ(metrics_.gap_offsets.value(), Gauge::kUnknown);
  turns();
  EXPECT_EQ(metrics_.gap_offsets.value(), 0);
}

TEST_F(GapFillerTest, SaysOfAFilledPieceWhatItsNewestIs) {
  told_.tell({event("a", "1"), "rubbish"});
  turns();
  EXPECT_TRUE(filled_.empty()) << "a letter is under way";
  filler_.letter_arrived(0, 11);
  turns();
  EXPECT_EQ(filled_, (std::vector<Gap>{{10, 20}}));
  EXPECT_EQ(newest_, kNewest);
}

TEST_F(GapFillerTest, TheBrokersTimestampsAreAmongTheNewest) {
  told_.tell({"rubbish"});
  told_.chunks.back().messages[0].what.timestamp_ms = 1'800'000'000'000;
  turns();
  filler_.letter_arrived(0, 10);
  turns();
  EXPECT_EQ(newest_, instant_from_ms(1'800'000'000'000));
}

TEST_F(GapFillerTest, WhatIsThereIsNotWrittenAgainButItsExpiryIsSeenTo) {
  told_.tell({event("a", "1"), event("b", "2")});
  turns();
  const FaultStore::Record before = store_.records()["p:{a}"];
  store_.records()["p:{a}"].expire_at = {};
  writer_.forget_known();
  store_.records()[key(0)].bytes = "4 500 gaps=10-20";  // an older state of the mark
  told_.tell({event("a", "1"), event("b", "2"), event("b", "4")});
  turns();
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(store_.records()["p:{a}"].bytes, before.bytes);
  EXPECT_GE(store_.records()["p:{a}"].expire_at, kNewest + std::chrono::days{32});
  EXPECT_EQ(metrics_.gap_records_unread.value(), 0U);
  EXPECT_EQ(entries("b"), 2U);
}

TEST_F(GapFillerTest, ARecordThatCannotBeReadIsWrittenAllTheSame) {
  int operations = 0;
  store_.next_fault = [&operations] {
    return ++operations == 1 ? FaultStore::Fault::kLost : FaultStore::Fault::kNone;
  };
  told_.tell({event("a", "1")});
  filler_.tick(now_, true);
  turns();
  EXPECT_EQ(entries("a"), 1U);
  EXPECT_EQ(metrics_.gap_records_unread.value(), 1U);
  EXPECT_EQ(missing(), 0);
}

TEST_F(GapFillerTest, AMessageThatIsNoEventIsWaitedForUntilItHasArrived) {
  told_.tell({event("a", "1"), "rubbish"});
  turns();
  EXPECT_EQ(rejected_, (std::vector<std::int64_t>{11}));
  EXPECT_EQ(missing(), 10);
  filler_.letter_arrived(0, 11);
  turns();
  EXPECT_EQ(missing(), 0);
}

TEST_F(GapFillerTest, AKeyThatRedisRefusesIsWaitedForToo) {
  store_.refused_key = "p:{a}";
  store_.refusal = "WRONGTYPE Operation against a key holding the wrong kind of value";
  told_.tell({event("a", "1"), event("b", "2")});
  turns();
  EXPECT_EQ(missing(), 10);
  EXPECT_EQ(entries("b"), 1U);
  filler_.letter_arrived(0, 10);
  turns();
  EXPECT_EQ(missing(), 0);
}

TEST_F(GapFillerTest, AGapThatStaysUnreadableIsSaidEverMoreSeldom) {
  for (int i = 0; i < 64; ++i) {
    told_.chunks.push_back({.failure = "no broker"});
    now_ += milliseconds{1000};
    partitions_.tick(now_, kNewest);
    filler_.tick(now_, true);
  }
  ASSERT_GE(said_.size(), 4U);
  EXPECT_LE(said_.size(), 7U);
  EXPECT_NE(said_[2].find("(4 times)"), std::string::npos) << said_[2];
}

TEST_F(GapFillerTest, AStretchThatCannotBeReadIsAskedForAgain) {
  told_.chunks.push_back({.failure = "no broker"});
  tick();
  tick();
  tick();
  told_.tell({event("a", "1")});
  turns();
  EXPECT_GE(told_.asked.size(), 2U);
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(entries("a"), 1U);
}

// Its window is the smallest there is.
class GapFillerOfASlowRedis : public GapFillerTest {
 protected:
  GapFillerOfASlowRedis() : GapFillerTest({.writes_in_flight_max = 1}) {}
};

TEST_F(GapFillerOfASlowRedis, HasAFifthOfTheWritesUnderWayLookUpsIncluded) {
  tell_users(0, 250);
  tell_users(250, 500);
  store_.immediate = false;
  EXPECT_LE(most_under_way(30), FlightWindow::kWritesMin / 5);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(entries(fmt::format("u{}", i)), 1U);
}

TEST_F(GapFillerTest, WaitsWithWhatItHasLookedUpWhileRedisTakesLessThanItDid) {
  tell_users(0, 400);
  store_.immediate = false;
  filler_.tick(now_, true);
  ASSERT_EQ(store_.waiting(), 400U);
  store_.run_all();
  write_live("l1", FaultStore::Fault::kNone);
  write_live("l2", FaultStore::Fault::kLost);  // it takes half as much from now on
  EXPECT_EQ(writer_.gap_room(), 300U);
  filler_.tick(now_, true);
  EXPECT_EQ(store_.waiting(), 300U);
  (void)most_under_way(3);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(entries(fmt::format("u{}", i)), 1U);
}

TEST_F(GapFillerTest, MessagesThatHaveExpiredAreSaidAndMissingForGood) {
  told_.chunks.push_back({.log_start = 14});
  told_.tell({event("a", "1"), event("b", "2")});
  turns();
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(entries("a"), 1U);
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(was_said("4 messages that Redis lacks have expired in Kafka, up to offset 14"));
  EXPECT_FALSE(was_said("nothing is missing"));
  const auto expired = partitions_.take_expired();
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].partition, 0);
  EXPECT_EQ(expired[0].newest, kNewest) << "a later message's";
  EXPECT_TRUE(partitions_.take_expired().empty());
}

TEST_F(GapFillerTest, AGapThatHasExpiredAsAWholeIsNoneButMissingForGood) {
  told_.chunks.push_back({.end = true, .log_start = 700});
  turns();
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(was_said("10 messages that Redis lacks have expired in Kafka"));
  EXPECT_FALSE(was_said("nothing is missing"));
  const auto expired = partitions_.take_expired();
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].newest, std::nullopt);
}

TEST_F(GapFillerTest, MessagesThatExpireWithTheRetentionAreNotMissed) {
  told_.chunks.push_back({.log_start = 14});
  told_.tell({"rubbish"});
  told_.chunks.back().messages[0].what.timestamp_ms = to_ms(kNewest - std::chrono::days{33});
  turns();
  filler_.letter_arrived(0, 10);
  turns();
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
  EXPECT_TRUE(partitions_.take_expired().empty());
  EXPECT_TRUE(was_said("its gap is filled, nothing is missing"));
}

TEST(GapLogChunk, IsTakenInPartsAndItsEndWithTheLast) {
  GapLog::Chunk chunk{.ticket = 7, .end = true, .log_start = 2};
  for (std::int64_t offset = 0; offset < 5; ++offset) {
    chunk.messages.push_back({.what = {.offset = offset}});
  }
  EXPECT_FALSE(take_part(chunk, 5));
  const auto part = take_part(chunk, 3);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->ticket, 7U);
  EXPECT_EQ(part->messages.size(), 3U);
  EXPECT_FALSE(part->end);
  EXPECT_FALSE(part->log_start);
  ASSERT_EQ(chunk.messages.size(), 2U);
  EXPECT_EQ(chunk.messages[0].what.offset, 3);
  EXPECT_TRUE(chunk.end);
  EXPECT_FALSE(take_part(chunk, 2));
}

}  // namespace gap_filler_test
}  // namespace fcap::updater
