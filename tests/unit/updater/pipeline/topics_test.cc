// Partitions of two topics that have the same number have nothing else in common.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/clock.h"
#include "redis/config_record.h"
#include "tests/support/part.h"
#include "tests/unit/updater/support/partition_set_fixture.h"
#include "updater/pipeline/config_publisher.h"
#include "updater/pipeline/dead_letter_box.h"
#include "updater/watch/lag_book.h"
#include "updater/watch/silence_book.h"

namespace fcap::updater {
namespace topics_test {

using ::testing::ElementsAre;
using ::testing::Pair;
using namespace std::chrono_literals;

constexpr TopicPartition kFirst = part(3, 0);
constexpr TopicPartition kSecond = part(3, 1);

class PartitionsOfTwoTopics : public testing::PartitionSetFixture {
 protected:
  PartitionsOfTwoTopics() {
    MarkOptions marks = options();
    marks.topics = {"t", "u"};
    marks.gap_min = 20;
    both_ = std::make_unique<PartitionSet>(
        store_, [this] { return epoch_; }, log_, marks, metrics_,
        [this](LogLevel, std::string_view text) { said_.emplace_back(text); });
    store_.records()[key_of("t")].bytes = encode_mark({.position = 100});
    store_.records()[key_of("u")].bytes = encode_mark({.position = 200});
    log_.commits = {{kFirst, 100}, {kSecond, 200}};
    std::vector<PartitionOffset> at{{kFirst}, {kSecond}};
    both_->assign(at);
    first_at_ = at[0].offset;
    second_at_ = at[1].offset;
    turns();
  }

  static std::string key_of(std::string_view topic) { return mark_key("p", "g", topic, 3); }
  std::string mark_of(std::string_view topic) { return store_.records()[key_of(topic)].bytes; }
  void turns() {
    for (int i = 0; i < 5; ++i) {
      now_ += 1s;
      both_->tick(now_, instant_from_ms(1'700'000'000'000));
    }
  }
  std::vector<Batch::Range> read(TopicPartition partition, std::int64_t first, std::int64_t end) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      EXPECT_TRUE(both_->take(partition, offset));
    }
    std::vector<Batch::Range> ranges;
    both_->seal(ranges);
    return ranges;
  }

  std::unique_ptr<PartitionSet> both_;
  std::int64_t first_at_ = 0;
  std::int64_t second_at_ = 0;
};

TEST_F(PartitionsOfTwoTopics, HaveMarksCommitsAndRangesOfTheirOwn) {
  EXPECT_EQ(both_->size(), 2U);
  EXPECT_EQ(first_at_, 100);
  EXPECT_EQ(second_at_, 200);
  EXPECT_TRUE(both_->take(kFirst, 100));
  EXPECT_TRUE(both_->take(kSecond, 200));
  EXPECT_TRUE(both_->take(kFirst, 101));
  std::vector<Batch::Range> ranges;
  both_->seal(ranges);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].partition, kFirst);
  EXPECT_EQ(ranges[1].partition, kSecond);
  both_->complete(ranges[1]);
  turns();
  EXPECT_EQ(both_->low_water(kFirst), 100);
  EXPECT_EQ(both_->low_water(kSecond), 201);
  EXPECT_TRUE(mark_of("t").starts_with("4 100")) << mark_of("t");
  EXPECT_TRUE(mark_of("u").starts_with("4 201")) << mark_of("u");
  std::vector<PartitionOffset> commits;
  both_->collect_commits(commits);
  ASSERT_EQ(commits.size(), 1U);
  EXPECT_EQ(commits[0].partition, kSecond);
  EXPECT_EQ(commits[0].offset, 201);
}

TEST_F(PartitionsOfTwoTopics, ALossOfOneMarkIsAGapOfThatPartitionOnly) {
  for (const auto& range : read(kFirst, 100, 150)) both_->complete(range);
  for (const auto& range : read(kSecond, 200, 250)) both_->complete(range);
  turns();
  store_.records().erase(key_of("u"));
  turns();
  std::vector<GapSegment> segments;
  both_->list_segments(segments);
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].partition, kSecond);
  EXPECT_EQ(segments[0].to, 250);
  EXPECT_TRUE(both_->take(kFirst, 150)) << "it reads on";
  EXPECT_TRUE(std::ranges::any_of(said_, [](const std::string& line) {
    return line.find("partition 3 of topic 2 is read again") != std::string::npos;
  })) << ::testing::PrintToString(said_);
}

TEST_F(PartitionsOfTwoTopics, AreHeldAndGivenUpOneByOne) {
  const std::uint64_t generation = both_->open_letter(kSecond, 200);
  both_->hold(kSecond, true);
  EXPECT_FALSE(both_->held(kFirst));
  EXPECT_TRUE(both_->take(kFirst, 100));
  EXPECT_FALSE(both_->take(kSecond, 200));
  EXPECT_FALSE(both_->current(kFirst, generation));
  const PartitionOffset given_up{kFirst};
  both_->revoke({&given_up, 1});
  EXPECT_FALSE(both_->awaited(kFirst));
  EXPECT_TRUE(both_->current(kSecond, generation));
}

TEST(TwoTopics, LieBehindAndAreSilentEachForItself) {
  constexpr LagBook::TimePoint kNow{1000s};
  LagBook lags(8s);
  lags.set_done(std::vector<PartitionDone>{{kFirst, 100}, {kSecond, 500}}, true);
  lags.set_ends({{kFirst, 130}}, kNow);
  EXPECT_THAT(lags.lag(kNow).by_partition, ElementsAre(Pair(kFirst, 30)));
  lags.set_ends({{kSecond, 501}}, kNow);
  EXPECT_THAT(lags.lag(kNow).by_partition, ElementsAre(Pair(kFirst, 30), Pair(kSecond, 1)));
  EXPECT_THAT(lags.behind(9, kNow), ElementsAre(Pair(kFirst, 100), Pair(kSecond, 500)));

  SilenceBook silence;
  const std::vector<SilenceBook::Reading> before{{kFirst, 10, 20}, {kSecond, 30, 40}};
  const std::vector<SilenceBook::Reading> after{{kFirst, 10, 20}, {kSecond, 31, 40}};
  silence.set_reading(before, kNow);
  silence.set_drained(kNow + 1s);
  silence.set_reading(after, kNow + 7s);
  EXPECT_THAT(silence.silent(kNow + 7s), ElementsAre(kFirst));
}

TEST(TwoTopics, AreAnsweredEachForItself) {
  BoundsBook bounds;
  bounds.ask(std::vector{kFirst, kSecond});
  LogBoundsAnswers answers;
  answers.emplace(kSecond, LogBounds{std::nullopt, 7});
  bounds.settle(bounds.take_waiting(), std::move(answers));
  EXPECT_FALSE(bounds.answer(kFirst));
  ASSERT_TRUE(bounds.answer(kSecond));
  EXPECT_EQ(bounds.answer(kSecond)->value().retention_start, 7);
}

struct NoTopic final : DeadLetterSink {
  void send(const DeadLetter&, DeadLetterCompletion& done) noexcept override {
    done.delivered(Delivery::kFailed, "no");
  }
};

TEST(TwoTopics, WaitForTheirOwnDeadLetters) {
  NoTopic sink;
  Metrics metrics;
  DeadLetterBox box{&sink, {}, metrics, {}};
  DeadLetter letter;
  letter.partition = kSecond;
  box.put(std::move(letter), 1);
  std::vector<DeadLetterBox::Place> arrived;
  box.pump(
      DeadLetterBox::Clock::now(),
      [](TopicPartition partition, std::uint64_t) { return partition == kSecond; }, arrived);
  EXPECT_THAT(box.waiting_partitions(), ElementsAre(kSecond));
}

TEST(TwoTopics, SayOfTheirOpenGapsEachByItsName) {
  testing::FaultStore store;
  store.immediate = true;
  redis::ConfigRecord record;
  record.key_prefix = "p";
  record.retention = 24h;
  ConfigPublisher publisher{store, record, {}};
  for (int i = 0; i < 3; ++i) publisher.poll({}, {});  // Redis is in use before there are topics
  const Instant first = std::chrono::floor<std::chrono::milliseconds>(base::wall_now()) - 2h;
  const Instant second = first + 1h;
  publisher.set_open_gaps({.group_id = "g",
                           .topics = {"t", "u"},
                           .missing_before = {{kFirst, first}, {kSecond, second}}});
  for (int i = 0; i < 3; ++i) publisher.poll(ConfigPublisher::Clock::now(), base::wall_now());
  const auto found = redis::parse_config(store.records()[redis::config_key("p")].bytes);
  ASSERT_TRUE(found.ok());
  const redis::ConfigRecord::MissingBefore expected{{"g:t", {{"3", first}}},
                                                    {"g:u", {{"3", second}}}};
  EXPECT_EQ(found.value().missing_before, expected);
}

TEST(TwoTopics, AreToldApartInTheLogWhereThereAreTwo) {
  EXPECT_EQ(fmt::format("partition {}", kFirst), "partition 3");
  EXPECT_EQ(fmt::format("partition {}", kSecond), "partition 3 of topic 2");
}

}  // namespace topics_test
}  // namespace fcap::updater
