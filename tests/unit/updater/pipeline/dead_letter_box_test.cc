#include "updater/pipeline/dead_letter_box.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace dead_letter_box_test {

using std::chrono::milliseconds;

// A topic that takes letters up to a size, or none.
class ScriptedTopic final : public DeadLetterSink {
 public:
  void send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept override {
    if (missing) return done.delivered(Delivery::kFailed, "Unknown topic");
    if (letter.weight_bytes() > bytes_max) return done.delivered(Delivery::kTooLarge, "too large");
    taken.push_back(letter);
    done.delivered(Delivery::kDelivered, {});
  }
  bool missing = false;
  std::size_t bytes_max = 1'000'000;
  std::vector<DeadLetter> taken;
};

class DeadLetterBoxTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kGeneration = 7;
  void put(std::int32_t partition, std::int64_t offset, std::size_t bytes = 10) {
    DeadLetter letter;
    letter.payload = std::string(bytes, 'x');
    letter.key = "key";
    letter.headers = {{"trace", "1"}};
    letter.partition = partition;
    letter.offset = offset;
    box_.put(std::move(letter), kGeneration);
  }
  void tick(int times = 10) {
    for (int i = 0; i < times; ++i) {
      box_.tick(
          now_, [this](std::int32_t, std::uint64_t) { return current_; }, arrived_);
      now_ += milliseconds{10'000};
    }
  }
  ScriptedTopic topic_;
  Metrics metrics_;
  DeadLetterBox box_{&topic_, {}, metrics_, {}};
  std::vector<DeadLetterBox::LetterPosition> arrived_;
  bool current_ = true;
  DeadLetterBox::Clock::time_point now_ = DeadLetterBox::Clock::now();
};

TEST_F(DeadLetterBoxTest, ALetterThatArrivesGivesItsPlace) {
  put(2, 55);
  tick(1);
  ASSERT_EQ(arrived_.size(), 1U);
  EXPECT_EQ(arrived_[0].partition, 2);
  EXPECT_EQ(arrived_[0].generation, kGeneration);
  EXPECT_EQ(arrived_[0].offset, 55);
  EXPECT_EQ(metrics_.dead_letters.value(), 1U);
  EXPECT_EQ(metrics_.rejected[0].value(), 1U);
}

TEST_F(DeadLetterBoxTest, AMissingTopicHoldsUpThePartitionOfTheLetterAndSaysWhy) {
  topic_.missing = true;
  put(1, 9);
  tick();
  EXPECT_TRUE(arrived_.empty());
  EXPECT_TRUE(box_.failing());
  EXPECT_EQ(box_.waiting_partitions(), (std::set<std::int32_t>{1}));
  EXPECT_NE(box_.trouble().find("Unknown topic"), std::string::npos) << box_.trouble();
  topic_.missing = false;
  tick();
  EXPECT_EQ(arrived_.size(), 1U);
  EXPECT_FALSE(box_.failing());
}

TEST_F(DeadLetterBoxTest, TheFirstFailureIsSaid) {
  topic_.missing = true;
  put(1, 9);
  tick(1);
  EXPECT_TRUE(box_.failing());
  EXPECT_EQ(box_.waiting_partitions(), (std::set<std::int32_t>{1}));
}

TEST_F(DeadLetterBoxTest, WhatIsTooLargeForTheTopicGoesAsAStub) {
  topic_.bytes_max = 20'000;
  put(0, 1, 3'000'000);
  tick();
  EXPECT_EQ(arrived_.size(), 1U);
  ASSERT_EQ(topic_.taken.size(), 1U);
  EXPECT_EQ(topic_.taken[0].bytes_before_cut, 3'000'000U);
  EXPECT_EQ(topic_.taken[0].payload, std::string(16 * 1024, 'x'));
  EXPECT_EQ(topic_.taken[0].offset, 1);
}

TEST_F(DeadLetterBoxTest, EvenATopicThatTakesNextToNothingTakesTheStub) {
  topic_.bytes_max = 100;
  put(0, 1, 3'000'000);
  tick();
  EXPECT_EQ(arrived_.size(), 1U);
}

TEST_F(DeadLetterBoxTest, AFailedLetterOfAPartitionThatWasGivenUpIsDropped) {
  topic_.missing = true;
  put(1, 9);
  current_ = false;
  tick();
  EXPECT_FALSE(box_.failing());
  EXPECT_TRUE(arrived_.empty());
}

TEST_F(DeadLetterBoxTest, IsFullAtItsBoundUntilLettersArrive) {
  topic_.missing = true;
  for (int i = 0; i < 40; ++i) put(0, i, 1'000'000);
  EXPECT_TRUE(box_.full());
  topic_.missing = false;
  tick();
  EXPECT_FALSE(box_.full());
  EXPECT_EQ(arrived_.size(), 40U);
}

}  // namespace dead_letter_box_test
}  // namespace fcap::updater
