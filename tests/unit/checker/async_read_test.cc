#include "checker/async_read.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checker/pool.h"

namespace fcap::checker {
namespace async_read_test {

using ::testing::ElementsAre;
using Answerer = AsyncRead::Answerer;

// Writes down what it is asked; what else happens meanwhile happens behind that.
class NotingOwner final : public ReadOwner {
 public:
  void note_outcome(const AsyncRead&, const StoreOutcome&) noexcept override {
    asked.emplace_back("note");
    if (beside_note) beside_note();
  }
  void hand_over(AsyncRead&) noexcept override {
    asked.emplace_back("hand over");
    if (beside_hand_over) beside_hand_over();
  }
  void answer(AsyncRead& read, const ReadOutcome& outcome) noexcept override {
    asked.push_back("answer by " + std::string(outcome.record));
    end(read);
  }
  void drop_canceled(AsyncRead& read) noexcept override {
    asked.emplace_back("drop");
    end(read);
  }
  void end(AsyncRead& read) noexcept {
    read.drop_callback();
    if (read.state.end()) forget(read);
  }
  void forget(AsyncRead& read) noexcept override {
    asked.emplace_back("forget");
    read.drop_reference();
  }

  std::vector<std::string> asked;
  std::function<void()> beside_note;
  std::function<void()> beside_hand_over;
};

class AsyncReadTest : public ::testing::Test {
 private:
  Pool<AsyncRead>::Owner reads_ = Pool<AsyncRead>::make();

 protected:
  ~AsyncReadTest() override { read.drop_reference(); }

  // References of the owner's list, the store and the test.
  void prepare(Answerer answerer) {
    read.prepare(owner, answerer);
    read.share(3);
  }
  void complete() { read.complete({.code = StoreCode::kOk, .record = "it"}); }

  NotingOwner owner;
  AsyncRead& read = *reads_->acquire();
};

TEST_F(AsyncReadTest, IsAnsweredByTheStoreOnceTheCallThatAskedIsThrough) {
  prepare(Answerer::kStore);
  EXPECT_FALSE(read.state.leave_submit());
  complete();
  EXPECT_THAT(owner.asked, ElementsAre("note", "answer by it", "forget"));
}

TEST_F(AsyncReadTest, IsAnsweredByTheCallThatAskedIfTheStoreCompletesInsideIt) {
  prepare(Answerer::kStore);
  complete();
  EXPECT_THAT(owner.asked, ElementsAre("note"));
  EXPECT_TRUE(read.state.leave_submit());
  read.run();
  EXPECT_THAT(owner.asked, ElementsAre("note", "answer by it", "forget"));
}

TEST_F(AsyncReadTest, IsAnsweredByTheStoreIfTheCallThatAskedLeavesMeanwhile) {
  prepare(Answerer::kStore);
  owner.beside_note = [&] { EXPECT_FALSE(read.state.leave_submit()); };
  complete();
  EXPECT_THAT(owner.asked, ElementsAre("note", "answer by it", "forget"));
}

TEST_F(AsyncReadTest, IsForgottenBehindCompleteAlsoIfTheExecutorIsDoneBefore) {
  prepare(Answerer::kExecutor);
  EXPECT_FALSE(read.state.leave_submit());
  owner.beside_hand_over = [&] {
    read.run();
    owner.asked.emplace_back("the executor is done");
  };
  complete();
  EXPECT_THAT(owner.asked,
              ElementsAre("note", "hand over", "answer by it", "the executor is done", "forget"));
}

TEST_F(AsyncReadTest, IsForgottenBehindCompleteAlsoIfItIsCanceledMeanwhile) {
  prepare(Answerer::kExecutor);
  EXPECT_FALSE(read.state.leave_submit());
  owner.beside_note = [&] { EXPECT_TRUE(read.cancel()); };
  owner.beside_hand_over = [] { ADD_FAILURE() << "nobody wants the answer"; };
  complete();
  EXPECT_THAT(owner.asked, ElementsAre("note", "drop", "forget"));
  read.run();
  EXPECT_FALSE(read.cancel());
  EXPECT_THAT(owner.asked, ElementsAre("note", "drop", "forget"));
}

TEST_F(AsyncReadTest, ALateCompletionLeavesTheOwnerAlone) {
  for (const Answerer answerer : {Answerer::kStore, Answerer::kExecutor, Answerer::kAnyThread}) {
    prepare(answerer);
    EXPECT_FALSE(read.state.leave_submit());
    EXPECT_TRUE(read.cancel());
    owner.asked.clear();
    complete();
    EXPECT_THAT(owner.asked, ElementsAre());
  }
}

}  // namespace async_read_test
}  // namespace fcap::checker
