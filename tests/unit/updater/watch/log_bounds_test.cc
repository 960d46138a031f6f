#include "updater/watch/log_bounds.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "updater/options/part_options.h"

namespace fcap::updater {
namespace log_bounds_test {

LogBoundsAnswers answers_of(std::int32_t partition, std::int64_t start) {
  LogBoundsAnswers answers;
  answers.emplace(partition, LogBounds{std::nullopt, start});
  return answers;
}

TEST(BoundsBook, AnAnswerIsThereOnceItHasArrived) {
  BoundsBook book;
  EXPECT_FALSE(book.waiting());
  book.ask(std::vector{3, 4});
  EXPECT_TRUE(book.waiting());
  EXPECT_FALSE(book.answer(3));
  const auto taken = book.take_waiting();
  EXPECT_FALSE(book.waiting());
  book.settle(taken, answers_of(3, 7));
  ASSERT_TRUE(book.answer(3));
  EXPECT_EQ(book.answer(3)->value().retention_start, 7);
  EXPECT_FALSE(book.answer(4));
}

TEST(BoundsBook, WhatIsAskedAgainForgetsTheOldAnswerAlsoTheOneUnderWay) {
  BoundsBook book;
  book.ask(std::vector{3});
  const auto first = book.take_waiting();
  book.settle(first, answers_of(3, 7));
  book.ask(std::vector{3});
  EXPECT_FALSE(book.answer(3));
  const auto second = book.take_waiting();
  book.ask(std::vector{3});
  book.settle(second, answers_of(3, 8));
  EXPECT_FALSE(book.answer(3));
  EXPECT_TRUE(book.waiting());
  book.settle(book.take_waiting(), answers_of(3, 9));
  ASSERT_TRUE(book.answer(3));
  EXPECT_EQ(book.answer(3)->value().retention_start, 9);
}

// What a decoder says of every message.
class ToldDecoder final : public events::EventDecoder {
 public:
  ToldDecoder(events::Decoded decoded, const std::vector<std::int64_t>& times_ms)
      : decoded_(decoded), times_ms_(times_ms) {}
  events::Decoded decode(const events::Message& /*message*/, std::vector<events::Event>& events,
                         events::Rejected& /*rejected*/) noexcept override {
    events.clear();
    for (const std::int64_t time_ms : times_ms_)
      events.emplace_back().time = instant_from_ms(time_ms);
    return decoded_;
  }

 private:
  events::Decoded decoded_;
  std::vector<std::int64_t> times_ms_;
};

std::optional<Instant> newest_of(events::Decoded decoded,
                                 const std::vector<std::int64_t>& times_ms) {
  return newest_event_by(std::make_shared<ToldDecoder>(decoded, times_ms))("message");
}

TEST(NewestEvent, IsTheLatestOfThoseThatTheDecoderFindsInAMessage) {
  EXPECT_EQ(newest_of(events::Decoded::kEvents, {7, 9, 8}), instant_from_ms(9));
  EXPECT_EQ(newest_of(events::Decoded::kEvents, {-7}), instant_from_ms(-7)) << "before 1970";
  EXPECT_EQ(newest_of(events::Decoded::kEvents, {}), std::nullopt);
  EXPECT_EQ(newest_of(events::Decoded::kRejected, {7}), std::nullopt);
  EXPECT_EQ(newest_of(events::Decoded::kNotYet, {7}), std::nullopt);
}

TEST(NewestEvent, IsLookedForInWhatTheUpdaterCounts) {
  const NewestEvent newest = watch_options(Settings{}).newest_event;
  ASSERT_TRUE(newest);
  constexpr std::string_view kEvent =
      R"({"user_id":"u","campaign_id":"c","timestamp":1700000000,"imp_id":"i"})";
  EXPECT_EQ(newest(kEvent), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(newest("no event"), std::nullopt);
}

}  // namespace log_bounds_test
}  // namespace fcap::updater
