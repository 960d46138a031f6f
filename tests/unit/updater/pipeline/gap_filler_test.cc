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
  void read(std::uint64_t ticket, TopicPartition, std::int64_t from, std::int64_t to) override {
    asked.push_back({from, to});
    ticket_ = ticket;
  }
  void stop(TopicPartition) override {}
  std::optional<Chunk> next_chunk(std::size_t) override {
    if (chunks.empty()) return std::nullopt;
    Chunk chunk = std::move(chunks.front());
    chunks.pop_front();
    chunk.ticket = ticket_;
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
  void SetUp() override {
    store_.records()[key(0)].bytes = "4 500 gaps=10-20";
    log_.commits[part(0)] = 500;
    std::vector<PartitionOffset> at{{part(0), PartitionOffset::kNone}};
    partitions_.assign(at);
    turn();
    turn();
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
  void turn() {
    now_ += milliseconds{1000};
    std::vector<Batch*> done;
    writer_.pump(now_, done);
    for (Batch* batch : done) {
      for (const Batch::Refused& refused : batch->refused()) {
        filler_.await_letter(*batch, batch->positions[refused.write].offset);
      }
      filler_.written(*batch);
      writer_.release(*batch);
    }
    partitions_.tick(now_, kNewest);
    filler_.turn(now_, true);
  }
  void turns() {
    for (int i = 0; i < 8; ++i) turn();
  }
  [[nodiscard]] std::int64_t missing() const { return partitions_.offsets_missing(); }
  [[nodiscard]] std::size_t entries(const std::string& user) {
    ledger::Ledger found;
    EXPECT_EQ(found.decode(store_.records()["p:{" + user + "}"].bytes), ledger::DecodeCode::kOk);
    return found.fingerprints().size();
  }

  PartitionSet partitions_{store_, [this] { return epoch_; }, log_, with_gaps(), metrics_, {}};
  BatchWriter writer_{store_, nullptr, WriteOptions{}, metrics_, {}, [this] { return epoch_; }};
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
       .reject =
           [this](TopicPartition, const GapLog::Message& message, const events::Rejected&) {
             rejected_.push_back(message.what.offset);
             return true;
           },
       .report = [this](LogLevel, std::string_view text) { said_.emplace_back(text); },
       .filled =
           [this](const GapSegment& segment, std::optional<Instant> newest) {
             filled_.push_back({segment.from, segment.to});
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
  log_.commits[part(1)] = 500;
  std::vector<PartitionOffset> at{{part(1), PartitionOffset::kNone}};
  partitions_.assign(at);
  filler_.turn(now_, true);
  EXPECT_EQ(metrics_.gap_offsets.value(), Gauge::kUnknown);
  turns();
  EXPECT_EQ(metrics_.gap_offsets.value(), 0);
}

TEST_F(GapFillerTest, SaysOfAFilledSegmentWhatItsNewestIs) {
  told_.tell({event("a", "1"), "rubbish"});
  turns();
  EXPECT_TRUE(filled_.empty()) << "a letter is under way";
  filler_.letter_arrived(part(0), 11);
  turns();
  EXPECT_EQ(filled_, (std::vector<Gap>{{10, 20}}));
  EXPECT_EQ(newest_, kNewest);
}

TEST_F(GapFillerTest, TheBrokersTimestampsAreAmongTheNewest) {
  told_.tell({"rubbish"});
  told_.chunks.back().messages[0].what.timestamp_ms = 1'800'000'000'000;
  turns();
  filler_.letter_arrived(part(0), 10);
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
  EXPECT_EQ(entries("b"), 2U);
}

TEST_F(GapFillerTest, ARecordThatCannotBeReadIsWrittenAllTheSame) {
  int operations = 0;
  store_.next_fault = [&operations] {
    return ++operations == 1 ? FaultStore::Fault::kLost : FaultStore::Fault::kNone;
  };
  told_.tell({event("a", "1")});
  filler_.turn(now_, true);
  turns();
  EXPECT_EQ(entries("a"), 1U);
  EXPECT_EQ(missing(), 0);
}

TEST_F(GapFillerTest, AMessageThatIsNoEventIsWaitedForUntilItHasArrived) {
  told_.tell({event("a", "1"), "rubbish"});
  turns();
  EXPECT_EQ(rejected_, (std::vector<std::int64_t>{11}));
  EXPECT_EQ(missing(), 10);
  filler_.letter_arrived(part(0), 11);
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
  filler_.letter_arrived(part(0), 10);
  turns();
  EXPECT_EQ(missing(), 0);
}

TEST_F(GapFillerTest, AGapThatStaysUnreadableIsSaidEverMoreSeldom) {
  for (int i = 0; i < 64; ++i) {
    told_.chunks.push_back({.failure = "no broker"});
    now_ += milliseconds{1000};
    partitions_.tick(now_, kNewest);
    filler_.turn(now_, true);
  }
  ASSERT_GE(said_.size(), 4U);
  EXPECT_LE(said_.size(), 7U);
  EXPECT_NE(said_[2].find("(4 times)"), std::string::npos) << said_[2];
}

TEST_F(GapFillerTest, AStretchThatCannotBeReadIsAskedForAgain) {
  told_.chunks.push_back({.failure = "no broker"});
  turn();
  turn();
  turn();
  told_.tell({event("a", "1")});
  turns();
  EXPECT_GE(told_.asked.size(), 2U);
  EXPECT_EQ(missing(), 0);
  EXPECT_EQ(entries("a"), 1U);
}

}  // namespace gap_filler_test
}  // namespace fcap::updater
