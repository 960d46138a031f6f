#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "redis/free_list.h"
#include "redis/ring_queue.h"
#include "redis/submission_queue.h"

namespace fcap::redis {
namespace queues_test {

TEST(RingQueue, KeepsOrderWhileItGrowsAndWraps) {
  RingQueue<int> queue;
  int next_in = 0;
  int next_out = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < round % 7 + 3; ++i) queue.push_back(next_in++);
    for (int i = 0; i < 4; ++i) {
      if (queue.empty()) break;
      ASSERT_EQ(queue.front(), next_out);
      queue.pop_front();
      ++next_out;
    }
    for (std::size_t i = 0; i < queue.size(); ++i) {
      ASSERT_EQ(queue[i], next_out + static_cast<int>(i));
    }
  }
  EXPECT_EQ(queue.size(), static_cast<std::size_t>(next_in - next_out));
}

class Numbered final : public Request {
 public:
  void on_reply(std::uint32_t /*index*/, const Reply& /*reply*/) noexcept override {}
  void on_done(TransportCode /*code*/) noexcept override {}
  std::size_t thread = 0;
  std::size_t number = 0;
};

TEST(SubmissionQueue, OnlyThePushThatFindsTheConsumerAsleepWakesIt) {
  SubmissionQueue queue;
  Numbered a;
  Numbered b;
  EXPECT_FALSE(queue.push(a));
  EXPECT_FALSE(queue.try_sleep());  // there is work
  EXPECT_EQ(queue.take_all(), &a);
  EXPECT_EQ(SubmissionQueue::next(a), nullptr);
  EXPECT_TRUE(queue.try_sleep());
  EXPECT_TRUE(queue.push(a));
  EXPECT_FALSE(queue.push(b));
  queue.awake();
  Request* const first = queue.take_all();
  EXPECT_EQ(first, &a);
  EXPECT_EQ(SubmissionQueue::next(*first), &b);
  EXPECT_EQ(queue.take_all(), nullptr);
  EXPECT_TRUE(queue.try_sleep());
  queue.awake();
  EXPECT_FALSE(queue.push(a));
}

TEST(SubmissionQueue, NothingIsLostAndEachThreadsOrderIsKept) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 20'000;
  SubmissionQueue queue;
  std::vector<std::vector<Numbered>> requests(kThreads);
  for (auto& own : requests) own = std::vector<Numbered>(kEach);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kEach; ++i) {
        requests[t][i].thread = t;
        requests[t][i].number = i;
        static_cast<void>(queue.push(requests[t][i]));
      }
    });
  }
  std::vector<std::size_t> expected(kThreads, 0);
  std::size_t taken = 0;
  while (taken < kThreads * kEach) {
    Request* request = queue.take_all();
    if (request == nullptr) {
      if (queue.try_sleep()) queue.awake();
      std::this_thread::yield();
    }
    while (request != nullptr) {
      const auto& numbered = static_cast<Numbered&>(*request);
      ASSERT_EQ(numbered.number, expected[numbered.thread]++);
      ++taken;
      request = SubmissionQueue::next(*request);
    }
  }
  EXPECT_EQ(queue.take_all(), nullptr);
}

TEST(FreeList, GivesBackWhatItWasGivenAndDeletesTheRest) {
  static std::atomic<int> alive{0};
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
  };
  {
    FreeList<Counted> list(1024);
    EXPECT_EQ(list.take(), nullptr);
    auto* const item = new Counted;
    list.give(item);
    EXPECT_TRUE(list.take() == item);
    EXPECT_EQ(list.take(), nullptr);
    list.give(item);
    for (int i = 0; i < 5000; ++i) list.give(new Counted);
    EXPECT_LT(alive, 5000);
    EXPECT_TRUE(list.take() == item);
    delete item;
  }
  EXPECT_EQ(alive, 0);
}

TEST(FreeList, NoTwoThreadsEverHoldTheSameObject) {
  struct Held {
    std::atomic<int> holders{0};
  };
  FreeList<Held> list(1024);
  std::atomic<int> shared_holdings{0};
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        Held* item = list.take();
        if (item == nullptr) item = new Held;
        if (item->holders.fetch_add(1) != 0) ++shared_holdings;
        item->holders.fetch_sub(1);
        list.give(item);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(shared_holdings, 0);
}

}  // namespace queues_test
}  // namespace fcap::redis
