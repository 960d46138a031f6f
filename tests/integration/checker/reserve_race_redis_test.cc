// Never exceeded: processes with many threads each race for a user's last slot, with repetitions,
// deadlines that are too short, and connections that are cut before the answer arrives.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "support/redis_test.h"
#include "support/reserving.h"
#include "support/tcp_proxy.h"
#include "tests/support/sanitized.h"
#include "tests/support/seed.h"

namespace fcap {
namespace reserve_race_redis_test {

using namespace std::chrono_literals;

constexpr int kProcesses = 4;
constexpr int kThreads = 16;
constexpr int kRacers = kProcesses * kThreads;
constexpr int kRaces = 300;
constexpr int kRacesInSoak = 10'000;

// What the processes share.
struct Board {
  pthread_barrier_t start_of_race;
  std::atomic<int> proxy_port{0};
  std::atomic<int> changed{0};    // answers
  std::atomic<int> uncertain{0};  // races without a certain answer
  std::atomic<int> unknown{0};
  std::atomic<int> repetitions{0};
  std::array<std::atomic<int>, kRacesInSoak> winners{};
};

Board* new_board() {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const board = new (memory) Board;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&board->start_of_race, &attributes, kRacers);
  pthread_barrierattr_destroy(&attributes);
  return board;
}

std::string user_of(int race) {
  return "race-" + std::to_string(race);
}
std::string id_of(int race, int racer) {
  return "imp-" + std::to_string(race) + "-" + std::to_string(racer);
}

// Asks until the answer is certain. Some deadlines are too short for any answer, and now and then a
// call that was answered is made once more: the answer must stay.
bool wins(Checker& checker, int race, int racer, std::mt19937& random, Board& board) {
  const std::string user = user_of(race);
  const std::string id = id_of(race, racer);
  std::optional<bool> answer;
  const auto give_up_at = std::chrono::steady_clock::now() + 5min;
  for (int tried = 0; std::chrono::steady_clock::now() < give_up_at; ++tried) {
    const bool hurried = tried == 0 && random() % 4 == 0;
    HardOptions options;
    options.deadline = hurried ? std::chrono::microseconds(random() % 400) : 30s;
    Impression shown{user, {"c"}, id};
    if (random() % 2 == 0) {
      const Candidate candidates[] = {{"c"}};
      shown.after = checker.check(user, candidates, {.keep_record = true}).token;
    }
    const HardResult result = checker.hard({HardCall::kReserve, shown}, options);
    if (result.unknown) board.unknown.fetch_add(1);
    const bool is_certain = result.allowed || result.reason == Reason::kCapped;
    if (!is_certain) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
      continue;
    }
    if (answer && *answer != result.allowed) board.changed.fetch_add(1);
    answer = result.allowed;
    if (random() % 8 != 0) return *answer;
    board.repetitions.fetch_add(1);
  }
  if (!answer) board.uncertain.fetch_add(1);
  return answer.value_or(false);
}

// One process: returns its exit code.
int race(int process, int redis_port, int races, std::uint64_t seed, Board& board) {
  while (board.proxy_port.load() == 0) std::this_thread::sleep_for(1ms);
  // Half of them reach Redis by a way that is cut now and then.
  const int port = process % 2 == 0 ? redis_port : board.proxy_port.load();
  RedisOptions reach;
  reach.addresses = {"127.0.0.1:" + std::to_string(port)};
  reach.reconnect_backoff_min = 1ms;
  reach.reconnect_backoff_max = 10ms;
  const auto checker = testing::reserving_checker(testing::reserver_options(reach), 1);
  if (checker == nullptr) return 2;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, racer = process * kThreads + thread] {
      std::mt19937 random(seed + static_cast<std::uint64_t>(racer));
      for (int race = 0; race < races; ++race) {
        pthread_barrier_wait(&board.start_of_race);
        if (wins(*checker, race, racer, random, board)) {
          board.winners.at(static_cast<std::size_t>(race)).fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

class ReserveRace : public testing::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    testing::make_reserver([this](const auto& words) { return redis_->command(words); });
    redis_->command({"SET", "fcap:!config", testing::config_for_reserving()});
  }

  void expect_one_winner_of_each(int races);

  // Who holds the slot by the record itself.
  static std::size_t holders(Store& store, int race) {
    ledger::Ledger ledger;
    const auto read = testing::StoreCalls(store).get("fcap:{" + user_of(race) + "}");
    EXPECT_EQ(ledger.decode(read.record), ledger::DecodeCode::kOk);
    EXPECT_EQ(ledger.size(), 0U);
    return ledger.reservations().size();
  }
};

void ReserveRace::expect_one_winner_of_each(int races) {
  const std::uint64_t seed = test_seed();
  Board* const board = new_board();
  ASSERT_NE(board, nullptr);
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(1100);  // should another process fail, nobody comes to the barrier
      ::_exit(race(process, redis_->port(), races, seed, *board));
    }
    children.push_back(child);
  }
  testing::TcpProxy proxy(redis_->port());
  board->proxy_port = proxy.port();
  proxy.cut_one_reply_of(200);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(board->changed, 0) << "answers";
  EXPECT_EQ(board->uncertain, 0) << "races without a certain answer";
  EXPECT_GT(board->unknown, 0);
  EXPECT_GT(board->repetitions, 0);
  const auto store = testing::connected_store(*redis_);
  for (int race = 0; race < races; ++race) {
    ASSERT_EQ(board->winners.at(static_cast<std::size_t>(race)), 1) << "race " << race;
    ASSERT_EQ(holders(*store, race), 1U) << "race " << race;
  }
  ::munmap(board, sizeof(Board));
}

TEST_F(ReserveRace, FourProcessesWithSixteenThreadsNeverExceedTheLastSlot) {
  expect_one_winner_of_each(kRaces);
}

TEST_F(ReserveRace, SOAK_NorInTenThousandRaces) {
  expect_one_winner_of_each(kRacesInSoak);
}

}  // namespace reserve_race_redis_test
}  // namespace fcap
