// Where the host's system starts no more threads.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "checker/answer_queue.h"
#include "fixtures.h"
#include "host_store.h"

namespace fcap::checker_test {
namespace refused_threads_test {

using ::testing::StartsWith;

// While one lives, no thread of this process can be started: its stack would not fit into the
// address space.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, kTooMuch), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static constexpr std::size_t kTooMuch = std::size_t{1} << 47U;
  pthread_attr_t before_{};
};

Result<std::unique_ptr<Checker>> create(CheckerOptions options) {
  const NoThreads none;
  return Checker::create(std::move(options));
}

void expect_refused(const Result<std::unique_ptr<Checker>>& made, const char* thread) {
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInternal);
  EXPECT_TRUE(made.status().retryable());
  EXPECT_EQ(made.status().text(),
            std::string("cannot start thread ") + thread + ": Resource temporarily unavailable");
}

TEST(CreateWithoutThreads, NamesTheThreadThatAnswersCallbacks) {
  CheckerOptions options = patient_options();
  options.store = std::make_shared<HostStore>();
  expect_refused(create(options), "fcap-answers");
  EXPECT_TRUE(Checker::create(options).ok()) << "there are threads again";
}

TEST(CreateWithoutThreads, NamesTheThreadOfAConnectionToRedis) {
  CheckerOptions options = patient_options();
  options.redis.addresses = {"127.0.0.1:1"};
  expect_refused(create(options), "fcap-redis-0");
}

class NeverGiven final : public checker::QueuedAnswer {
 public:
  void give() noexcept override { ADD_FAILURE() << "by whom?"; }
};

TEST(AnswerQueueWithoutAThread, TakesNoAnswers) {
  checker::AnswerQueue queue;
  NeverGiven answer;
  EXPECT_FALSE(queue.push(answer)) << "it was not started";
  {
    const NoThreads none;
    EXPECT_THAT(queue.start({}).text(), StartsWith("cannot start thread fcap-answers: "));
  }
  EXPECT_FALSE(queue.push(answer));
  EXPECT_EQ(queue.waiting(), 0U);
}

}  // namespace refused_threads_test
}  // namespace fcap::checker_test
