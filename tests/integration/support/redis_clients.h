#pragma once

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fcap/redis_options.h>

#include "redis/client.h"
#include "support/process.h"
#include "tests/support/sanitized.h"
#include "tests/support/seed.h"

namespace fcap::testing {

/// One command through the transport, blocking. It must be waited for before it goes.
class RedisCall final : public redis::Request {
 public:
  explicit RedisCall(std::initializer_list<std::string_view> words,
                     std::chrono::milliseconds time = std::chrono::milliseconds{30'000}) {
    redis::append_command(wire, words);
    deadline = std::chrono::steady_clock::now() + time;
  }

  RedisCall& on(redis::Client& client) {
    client.submit(*this);
    return wait();
  }
  RedisCall& wait() {
    done_.acquire();
    return *this;
  }

  void on_reply(std::uint32_t /*index*/, const redis::Reply& reply) noexcept override {
    text = std::string(reply.text);
    is_error = reply.kind == redis::Reply::Kind::kError;
  }
  void on_done(redis::TransportCode ended) noexcept override {
    code = ended;
    ++done_count;
    done_.release();
  }

  redis::TransportCode code = redis::TransportCode::kOverloaded;
  int done_count = 0;
  std::string text;
  bool is_error = false;

 private:
  std::binary_semaphore done_{0};
};

/// How many clients come back at once. Each has a thread of its own, of which the sanitizers cannot
/// carry as many.
inline constexpr std::size_t kClientsOfAStorm = kSanitized ? 200 : 1'000;

/// The clients of a storm, not yet connected. Elsewhere they would have machines of their own: here
/// their threads have the lowest priority, because servers that a thousand threads keep from
/// running do not even hear each other.
inline std::vector<std::unique_ptr<redis::Client>> clients_of_a_storm(std::size_t count,
                                                                      const RedisOptions& options) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<std::unique_ptr<redis::Client>> clients;
  // Threads inherit the priority of the one that starts them, which could not raise it again.
  std::thread([&] {
    constexpr int kLowest = 19;
    EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest), 0);
    while (clients.size() < count) {
      auto made = redis::Client::create(options);
      if (!made.ok()) {
        ADD_FAILURE() << made.status().text() << " after " << clients.size();
        return;
      }
      clients.push_back(std::move(made).value());
    }
  }).join();
  return clients;
}

/// Options under which recoveries come quickly. The timeouts are for a busy machine: where a test
/// is about one of them, it sets it.
inline RedisOptions quick_options(const std::string& address) {
  using std::chrono::milliseconds;
  RedisOptions options;
  options.addresses = {address};
  options.connect_timeout = milliseconds{5000};
  options.stale_reset = milliseconds{5000};
  options.reconnect_backoff_min = milliseconds{5};
  options.reconnect_backoff_max = milliseconds{50};
  options.breaker_backoff_min = milliseconds{5};
  options.breaker_backoff_max = milliseconds{50};
  return options;
}

/// A client that has its connections.
inline std::unique_ptr<redis::Client> connected(const RedisOptions& options) {
  auto client = redis::Client::create(options);
  EXPECT_TRUE(client.ok()) << client.status().text();
  EXPECT_TRUE(wait_until([&] { return client.value()->connected(); }))
      << client.value()->last_error();
  return std::move(client).value();
}

/// Whether the server answers.
inline bool answers(redis::Client& client) {
  return RedisCall({"PING"}).on(client).text == "PONG";
}

}  // namespace fcap::testing
