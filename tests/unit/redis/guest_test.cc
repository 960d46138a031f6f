// What a store costs a host while its server is not there.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "redis/store_operations.h"
#include "tests/support/sanitized.h"
#include "tests/support/thread_state.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FCAP_TEST_COUNTS_LOCKS 0  // the sanitizers have a pthread_mutex_lock() of their own
#else
#define FCAP_TEST_COUNTS_LOCKS 1
#endif

namespace {

constexpr const char* kSlowName = "slow.invalid";
// Is unknown when it is looked up for the first time, and leads to this machine later.
constexpr const char* kFickleName = "fickle.invalid";

// A name service that answers for kSlowName once it is let.
class SlowNames {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return answering_; });
  }
  void expect_waiting() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds{30}, [this] { return waiting_ > 0; }));
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    answering_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool answering_ = false;
};

SlowNames& slow_names() {
  static auto* const names = new SlowNames;  // a lookup may outlive the test's statics
  return *names;
}

template <typename Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

thread_local std::size_t locks_taken = 0;

}  // namespace

// In place of the C library's, for all of this program.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const bool is_number = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (name != nullptr && std::string(name) == kSlowName && !is_number) {
    slow_names().wait();
    return EAI_AGAIN;
  }
  if (name != nullptr && std::string(name) == kFickleName && !is_number) {
    static std::atomic<int> lookups{0};
    if (lookups.fetch_add(1) == 0) return EAI_AGAIN;
    name = "127.0.0.1";
  }
  static auto* const real = next_of<decltype(::getaddrinfo)>("getaddrinfo");
  return real(name, service, hints, found);
}

#if FCAP_TEST_COUNTS_LOCKS
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const real = next_of<decltype(::pthread_mutex_lock)>("pthread_mutex_lock");
  ++locks_taken;
  return real(mutex);
}
#endif

namespace fcap::redis {
namespace guest_test {

using namespace std::chrono_literals;

struct Seen final : StoreCompletion {
  void complete(const StoreOutcome& outcome) noexcept override {
    code = outcome.code;
    text_bytes = outcome.text.size();
  }
  std::atomic<StoreCode> code{StoreCode::kOk};
  std::size_t text_bytes = 0;
};

RedisOptions options_for(const std::string& address) {
  RedisOptions options;
  options.addresses = {address};
  options.breaker_failures = 0;  // only the link says no
  return options;
}

TEST(RedisGuest, ARefusedReadTakesNoMutexAndCopiesNoText) {
  // Nobody listens on port 1.
  const auto store = make_redis_store(options_for("127.0.0.1:1"));
  ASSERT_TRUE(store.ok());
  Seen seen;
  const auto ask = [&] {
    store.value()->get("fcap:{u}", std::chrono::steady_clock::now() + 10ms, seen);
  };
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (seen.code != StoreCode::kUnavailable && std::chrono::steady_clock::now() < until) {
    ask();
    std::this_thread::sleep_for(20ms);
  }
  while (store.value()->health().last_error.empty()) std::this_thread::sleep_for(1ms);
  const std::size_t before = locks_taken;
  for (int i = 0; i < 1000; ++i) {
    ask();
    ASSERT_EQ(seen.code, StoreCode::kUnavailable);
    ASSERT_EQ(seen.text_bytes, 0U);
  }
  EXPECT_EQ(locks_taken, before);
#if FCAP_TEST_COUNTS_LOCKS
  static_cast<void>(store.value()->health());
  EXPECT_GT(locks_taken, before) << "this test can see a lock";
#endif
}

TEST(RedisGuest, TheDestructorDoesNotWaitForANameService) {
  auto store = make_redis_store(options_for(std::string(kSlowName) + ":6379"));
  ASSERT_TRUE(store.ok());
  slow_names().expect_waiting();
  auto ended = std::async(std::launch::async, [&] { store.value().reset(); });
  EXPECT_EQ(ended.wait_for(30s), std::future_status::ready);
  slow_names().answer();
}

// A server that accepts connections and says nothing.
class SilentServer {
 public:
  SilentServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(::bind(listener_, address, size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, address, &size), 0);
  }
  ~SilentServer() { ::close(listener_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  }

 private:
  int listener_;
  sockaddr_in address_ = {};
};

// Waking the I/O thread is a system call in which a canceled thread would be unwound, out of a
// noexcept function.
TEST(RedisGuest, ACanceledThreadStartsARead) {
  const SilentServer server;
  RedisOptions options = options_for(server.address());
  options.connect_timeout = std::chrono::minutes{1};  // until then, it waits for a greeting
  const auto store = make_redis_store(options);
  ASSERT_TRUE(store.ok());
  struct Caller {
    Store& store;
    std::atomic<bool> went_on{false};
    Seen seen{};
  } caller{*store.value()};
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    Caller& mine = *static_cast<Caller*>(given);
    EXPECT_TRUE(falls_asleep(thread_named("fcap-redis-0")));
    ::pthread_cancel(::pthread_self());
    mine.store.get("fcap:{u}", std::chrono::steady_clock::now() + 10ms, mine.seen);
    mine.went_on = true;
    ::pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, &caller), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(caller.went_on);
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (caller.seen.code == StoreCode::kOk && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(caller.seen.code, StoreCode::kTimeout);
}

TEST(RedisGuest, AForkedChildKeepsNoDescriptor) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizers' allocators may not survive a fork";
  const auto open_descriptors = [] {
    constexpr int kMore = 1024;
    int count = 0;
    for (int fd = 0; fd < kMore; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  for (const RedisTopology topology :
       {RedisTopology::kSingle, RedisTopology::kSentinel, RedisTopology::kCluster}) {
    const int before = open_descriptors();
    RedisOptions options = options_for("127.0.0.1:1");
    options.topology = topology;
    options.sentinel_master = topology == RedisTopology::kSentinel ? "m" : "";
    auto client = Client::create(options);
    ASSERT_TRUE(client.ok()) << client.status().text();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      client.value().reset();
      ::_exit(open_descriptors() - before);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "descriptors; topology " << static_cast<int>(topology);
  }
}

TEST(RedisGuest, AsManyReadsAsAServerHoldsUpAreKeptForReuse) {
  auto client = Client::create(options_for("127.0.0.1:1"));
  ASSERT_TRUE(client.ok());
  StorePools pools(65'536);
  constexpr int kUnderWay = 16'384;
  for (int i = 0; i < kUnderWay; ++i) pools.gets.give(new GetOperation(*client.value(), pools));
  std::vector<std::unique_ptr<GetOperation>> taken;
  for (int i = 0; i < kUnderWay; ++i) {
    taken.emplace_back(pools.gets.take());
    ASSERT_NE(taken.back(), nullptr) << i;
  }
}

}  // namespace guest_test
}  // namespace fcap::redis
