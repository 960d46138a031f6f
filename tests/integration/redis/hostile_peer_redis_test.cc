// The transport against peers that are no Redis. It tells, drops them, and goes on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "redis/sentinel_questions.h"
#include "support/redis_clients.h"
#include "support/tcp_proxy.h"

namespace {

// How long this thread is held up before it sends.
thread_local std::chrono::milliseconds held_up_for{0};

}  // namespace

// In place of the C library's, for all of this program.
extern "C" ssize_t send(int fd, const void* bytes, std::size_t count, int flags) {
  std::this_thread::sleep_for(held_up_for);
  static auto* const real = reinterpret_cast<decltype(::send)*>(::dlsym(RTLD_NEXT, "send"));
  return real(fd, bytes, count, flags);
}

namespace fcap {
namespace hostile_peer_redis_test {

using redis::Client;
using redis::TransportCode;
using std::chrono::milliseconds;
using Call = testing::RedisCall;
using testing::quick_options;
using testing::wait_until;

// Accepts connections one after the other and treats each as it is told.
class FakePeer {
 public:
  explicit FakePeer(std::function<void(int)> treat)
      : listener_(testing::listen_on_loopback()), treat_(std::move(treat)) {
    thread_ = std::thread([this] {
      for (;;) {
        const int fd = ::accept4(listener_.fd, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        ++accepted;
        treat_(fd);
        ::close(fd);
      }
    });
  }
  ~FakePeer() {
    ::shutdown(listener_.fd, SHUT_RDWR);
    thread_.join();
    ::close(listener_.fd);
  }
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(listener_.port);
  }
  [[nodiscard]] int port() const { return listener_.port; }
  std::atomic<int> accepted{0};

 private:
  testing::Listener listener_;
  std::function<void(int)> treat_;
  std::thread thread_;
};

void say(int fd, std::string_view text) {
  static_cast<void>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL));
}

// What a server answers to HELLO, ROLE, CLUSTER INFO and PING.
constexpr std::string_view kGreeted =
    "*0\r\n*1\r\n$6\r\nmaster\r\n-ERR This instance has cluster support disabled\r\n+PONG\r\n";

// Its clock, for TIME, is nobody's concern here.
constexpr std::string_view kLooked = "*1\r\n$6\r\nmaster\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n";

// Waits until something has arrived; whether the other side has not closed.
bool hear(int fd) {
  char bytes[4096];
  return ::recv(fd, bytes, sizeof(bytes), 0) > 0;
}

TEST(RedisHostilePeer, WhatDoesNotSpeakTheProtocolIsToldAndLeft) {
  FakePeer peer([](int fd) { say(fd, "SSH-2.0-OpenSSH_9.2\r\n"); });
  auto client = Client::create(quick_options(peer.address()));
  EXPECT_EQ(Call({"PING"}).on(*client.value()).code, TransportCode::kUnavailable);
  EXPECT_NE(client.value()->last_error().find("SSH-2.0"), std::string::npos)
      << client.value()->last_error();
  EXPECT_TRUE(wait_until([&] { return peer.accepted >= 3; }));
}

TEST(RedisHostilePeer, GarbageAfterAGoodStartDropsTheConnection) {
  for (const std::string_view garbage :
       {"garbage\r\n", "$100000000000\r\n", "*2147483648\r\n",
        ":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"}) {
    FakePeer peer([&](int fd) {
      hear(fd);
      say(fd, kGreeted);
      hear(fd);
      say(fd, garbage);
      while (hear(fd)) continue;
    });
    RedisOptions options = quick_options(peer.address());
    options.stale_reset = std::chrono::minutes{5};
    const auto client = Client::create(options);
    ASSERT_TRUE(client.ok());
    EXPECT_TRUE(wait_until([&] {
      Call({"SET", "a", "b"}, milliseconds{100}).on(*client.value());
      return client.value()->connection_epoch() >= 2;  // made and lost
    })) << garbage;
  }
}

TEST(RedisHostilePeer, RandomBytesNeverCrashIt) {
  std::mt19937_64 random(test_seed());
  FakePeer peer([&](int fd) {
    hear(fd);
    say(fd, kGreeted);
    std::string bytes;
    for (auto n = random() % 2000; n > 0; --n) bytes += "*$:+-\r\n0123ab"[random() % 13];
    say(fd, bytes);
  });
  const auto client = Client::create(quick_options(peer.address()));
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(wait_until([&] {
    Call({"GET", "k"}, milliseconds{5}).on(*client.value());
    return peer.accepted >= 40;
  })) << peer.accepted;
}

// Treats each connection on a thread of its own; gives its number, from 0 on. The first one is the
// I/O thread's, the others are callers'.
class CrowdedPeer {
 public:
  explicit CrowdedPeer(std::function<void(int, int)> treat)
      : listener_(testing::listen_on_loopback()), treat_(std::move(treat)) {
    thread_ = std::thread([this] {
      for (int number = 0;; ++number) {
        const int fd = ::accept4(listener_.fd, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        ++accepted;
        treating_.emplace_back([this, fd, number] {
          treat_(fd, number);
          ::close(fd);
        });
      }
    });
  }
  // After the client has gone, and its connections with it.
  ~CrowdedPeer() {
    ::shutdown(listener_.fd, SHUT_RDWR);
    thread_.join();
    treating_.clear();
    ::close(listener_.fd);
  }
  CrowdedPeer(const CrowdedPeer&) = delete;
  CrowdedPeer& operator=(const CrowdedPeer&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(listener_.port);
  }
  std::atomic<int> accepted{0};

 private:
  testing::Listener listener_;
  std::function<void(int, int)> treat_;
  std::vector<std::jthread> treating_;
  std::thread thread_;
};

void behave_as_a_link_expects(int fd) {
  hear(fd);
  say(fd, kGreeted);
  hear(fd);
  say(fd, kLooked);
  while (hear(fd)) continue;
}

struct ReadNow final : StoreCompletion {
  void complete(const StoreOutcome& outcome) noexcept override {
    code = outcome.code;
    record = outcome.record;
  }
  std::optional<StoreCode> code;
  std::string record;
};

bool read(Client& client, ReadNow& done, milliseconds time) {
  return client.read("k", std::chrono::steady_clock::now() + time, done);
}

constexpr std::string_view kHalf = "$5\r\nfir";
constexpr std::string_view kOtherHalfAndAnAnswer = "st\r\n$6\r\nsecond\r\n";

TEST(RedisHostilePeer, HalfAReplyThatNobodyAskedForIsNoCallersAnswer) {
  CrowdedPeer peer([](int fd, int number) {
    if (number == 0) return behave_as_a_link_expects(fd);
    hear(fd);
    say(fd, std::string(kGreeted) + std::string(kHalf));
    if (hear(fd)) say(fd, kOtherHalfAndAnAnswer);
    while (hear(fd)) continue;
  });
  const auto client = testing::connected(quick_options(peer.address()));
  std::vector<std::string> given;
  EXPECT_TRUE(wait_until([&] {
    ReadNow done;
    if (read(*client, done, milliseconds{30'000})) given.push_back(done.record);
    return peer.accepted >= 10;
  })) << peer.accepted;
  EXPECT_TRUE(given.empty()) << given.front();
}

TEST(RedisHostilePeer, HalfAReplyThatNobodyAskedForIsNoRequestsAnswer) {
  FakePeer peer([](int fd) {
    hear(fd);
    say(fd, std::string(kGreeted) + std::string(kHalf));
    if (hear(fd)) say(fd, kOtherHalfAndAnAnswer);
    while (hear(fd)) continue;
  });
  RedisOptions options = quick_options(peer.address());
  options.stale_reset = std::chrono::minutes{5};
  const auto client = Client::create(options);
  ASSERT_TRUE(client.ok());
  std::vector<std::string> given;
  EXPECT_TRUE(wait_until([&] {
    Call call({"GET", "k"}, milliseconds{20});
    if (call.on(*client.value()).code == TransportCode::kOk) given.push_back(call.text);
    return peer.accepted >= 10;
  })) << peer.accepted;
  EXPECT_TRUE(given.empty()) << given.front();
}

TEST(RedisHostilePeer, ACallerThatWasHeldUpBlamesNoServer) {
  CrowdedPeer peer([](int fd, int number) {
    if (number == 0) return behave_as_a_link_expects(fd);
    hear(fd);
    say(fd, kGreeted);
    while (hear(fd)) continue;
  });
  RedisOptions options = quick_options(peer.address());
  options.direct_connections = 1;
  options.breaker_failures = 1;
  options.stale_reset = milliseconds{10};
  const auto client = testing::connected(options);
  ReadNow late;
  held_up_for = milliseconds{200};
  EXPECT_TRUE(wait_until([&] { return read(*client, late, milliseconds{100}); }));
  EXPECT_EQ(late.code, StoreCode::kTimeout);
  held_up_for = milliseconds{0};
  // The I/O thread has taken the connection back, and made another in its place.
  EXPECT_TRUE(wait_until([&] { return peer.accepted >= 3; }));
  EXPECT_EQ(client->health().breaker_openings, 0U) << client->last_error();
  // Again and again: the machine may hold up a caller as well.
  EXPECT_TRUE(wait_until([&] {
    ReadNow in_time;
    (void)read(*client, in_time, milliseconds{100});
    EXPECT_EQ(in_time.code.value_or(StoreCode::kTimeout), StoreCode::kTimeout);
    return client->health().breaker_openings == 1;
  }));
}

TEST(RedisHostilePeer, WhatWasAnsweredBeforeTheBreakerOpenedDoesNotCloseIt) {
  std::atomic<int> heard{0};
  CrowdedPeer peer([&](int fd, int number) {
    hear(fd);
    say(fd, kGreeted);
    if (number == 0 && hear(fd)) say(fd, kLooked);
    while (hear(fd)) {
      if (number == 0) {
        ++heard;
      } else {
        say(fd, "$1\r\nv\r\n");
      }
    }
  });
  RedisOptions options = quick_options(peer.address());
  options.breaker_failures = 1;
  options.stale_reset = std::chrono::minutes{5};
  const auto client = testing::connected(options);
  ReadNow done;
  EXPECT_TRUE(wait_until([&] { return read(*client, done, milliseconds{30'000}); }));
  // One that the I/O thread was late for itself does not open it.
  EXPECT_TRUE(wait_until([&] {
    Call unanswered({"GET", "k"}, milliseconds{20});
    client->submit(unanswered);
    for (int i = 0; i < 5; ++i) (void)read(*client, done, milliseconds{30'000});
    EXPECT_NE(unanswered.wait().code, TransportCode::kOk);
    return client->health().breaker_openings != 0;
  }));
  // The PINGs by which an open breaker asks.
  EXPECT_TRUE(wait_until([&] { return heard >= 10; })) << heard;
  EXPECT_TRUE(client->health().breaker_open);
  EXPECT_EQ(client->health().breaker_openings, 1U);
}

// A name may have an address that nothing comes back from.
TEST(RedisHostilePeer, ASentinelsAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  const auto endpoint_of = [](int port) {
    return redis::numeric_endpoints({.text = {},
                                     .host = "127.0.0.1",
                                     .port = static_cast<std::uint16_t>(port),
                                     .path = {}})
        .front();
  };
  // With one connection that nobody accepts, its queue is full.
  const testing::Listener silent = testing::listen_on_loopback();
  ASSERT_EQ(::listen(silent.fd, 0), 0);
  const redis::Endpoint nowhere = endpoint_of(silent.port);
  const int first = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(
      ::connect(first, reinterpret_cast<const sockaddr*>(&nowhere.storage), nowhere.length_bytes),
      0);
  FakePeer sentinel([](int fd) {
    hear(fd);
    say(fd, "-NOPERM SENTINEL MASTER\r\n*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n");
  });
  redis::NodeSession session([] { return redis::NodeSession::Account{}; }, -1);
  const auto within = [](milliseconds time) { return std::chrono::steady_clock::now() + time; };
  EXPECT_FALSE(session.open({nowhere}, "", within(milliseconds{100})).ok());
  const auto until = within(milliseconds{6'000});
  const Status opened = session.open({nowhere, endpoint_of(sentinel.port())}, "", until);
  EXPECT_TRUE(opened.ok()) << opened.text();
  const auto master = redis::ask_master(session, "fcap", until);
  ASSERT_TRUE(master.ok()) << master.status().text();
  EXPECT_EQ(master.value().epoch, std::nullopt);
  session.close();
  for (const int fd : {first, silent.fd}) ::close(fd);
}

TEST(RedisHostilePeer, APeerThatNeverAnswersCostsTheConnectTimeoutOnly) {
  FakePeer peer([](int fd) {
    while (hear(fd)) continue;
  });
  RedisOptions options = quick_options(peer.address());
  options.connect_timeout = milliseconds{200};
  auto client = Client::create(options);
  EXPECT_EQ(Call({"PING"}).on(*client.value()).code, TransportCode::kUnavailable);
  EXPECT_NE(client.value()->last_error().find("no answer"), std::string::npos)
      << client.value()->last_error();
}

}  // namespace hostile_peer_redis_test
}  // namespace fcap
