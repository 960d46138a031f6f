#include "updater/watch/log_bounds.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/part.h"

namespace fcap::updater {
namespace log_bounds_test {

LogBoundsAnswers answers_of(std::int32_t partition, std::int64_t start) {
  LogBoundsAnswers answers;
  answers.emplace(part(partition), LogBounds{std::nullopt, start});
  return answers;
}

TEST(BoundsBook, AnAnswerIsThereOnceItHasArrived) {
  BoundsBook book;
  EXPECT_FALSE(book.waiting());
  book.ask(std::vector{part(3), part(4)});
  EXPECT_TRUE(book.waiting());
  EXPECT_FALSE(book.answer(part(3)));
  const auto taken = book.take_waiting();
  EXPECT_FALSE(book.waiting());
  book.settle(taken, answers_of(3, 7));
  ASSERT_TRUE(book.answer(part(3)));
  EXPECT_EQ(book.answer(part(3))->value().retention_start, 7);
  EXPECT_FALSE(book.answer(part(4)));
}

TEST(BoundsBook, WhatIsAskedAgainForgetsTheOldAnswerAlsoTheOneUnderWay) {
  BoundsBook book;
  book.ask(std::vector{part(3)});
  const auto first = book.take_waiting();
  book.settle(first, answers_of(3, 7));
  book.ask(std::vector{part(3)});
  EXPECT_FALSE(book.answer(part(3)));
  const auto second = book.take_waiting();
  book.ask(std::vector{part(3)});
  book.settle(second, answers_of(3, 8));
  EXPECT_FALSE(book.answer(part(3)));
  EXPECT_TRUE(book.waiting());
  book.settle(book.take_waiting(), answers_of(3, 9));
  ASSERT_TRUE(book.answer(part(3)));
  EXPECT_EQ(book.answer(part(3))->value().retention_start, 9);
}

}  // namespace log_bounds_test
}  // namespace fcap::updater
