// How a link renews its connection, and how often it looks at what the updater states, with the
// clock in the test's hands.
#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "redis/link.h"
#include "tests/support/scripted_server.h"

namespace fcap::redis {
namespace renewal_test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using TimePoint = std::chrono::steady_clock::time_point;

class TestPoller final : public Poller {
 public:
  void watch(int fd, bool output, EventHandler& handler) override {
    watched_[fd] = {output, &handler};
  }
  void watch_end(int /*fd*/, EventHandler& /*handler*/) override {}
  void unwatch(int fd) override { watched_.erase(fd); }
  void take_submitted(TimePoint /*now*/) override {}
  void wake() noexcept override {}

  [[nodiscard]] std::size_t connections() const { return watched_.size(); }

  /// Hands over what has happened.
  void pump(TimePoint now) {
    std::vector<pollfd> polled;
    for (const auto& [fd, watched] : watched_) {
      polled.push_back({fd, static_cast<short>(watched.output ? POLLIN | POLLOUT : POLLIN), 0});
    }
    ::poll(polled.data(), polled.size(), 1);
    for (const pollfd& one : polled) {
      const auto found = watched_.find(one.fd);
      if (one.revents == 0 || found == watched_.end()) continue;
      const bool readable = (one.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
      found->second.handler->on_event(readable, (one.revents & POLLOUT) != 0, now);
    }
  }

 private:
  struct Watched {
    bool output = false;
    EventHandler* handler = nullptr;
  };
  std::map<int, Watched> watched_;
};

struct Get final : Request {
  Get(std::string key, TimePoint until) {
    wire = std::move(key);
    form = WireForm::kGetKey;
    deadline = until;
  }
  void on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept override {
    answer = reply.text;
  }
  void on_done(TransportCode ended) noexcept override { code = ended; }

  std::string answer;
  std::optional<TransportCode> code;
};

class Renewal : public ::testing::Test {
 protected:
  // A master whose records hold the number of the connection that reads them.
  static std::optional<std::string> answered(std::size_t connection,
                                             const ScriptedServer::Words& words) {
    return words[0] == "GET" ? resp_text(std::to_string(connection)) : as_single_master(words);
  }
  void serve(ScriptedServer::Answer answer) { server_.emplace(std::move(answer)); }

  Link& add_link() {
    if (!shared_) {
      RedisOptions options;
      options.addresses = {server_->address()};
      options.breaker_failures = 1;
      shared_.emplace(std::move(options));
    }
    auto address = parse_address(server_->address());
    links_.push_back(std::make_unique<Link>(*shared_, poller_, resolver_, address.value()));
    links_.back()->start(now_);
    EXPECT_TRUE(pump_until([&] {
      // Answers that nobody has read would be overdue when the clock moves on.
      return links_.back()->is_ready() && shared_->clock_difference().has_value();
    }));
    return *links_.back();
  }

  template <typename Holds>
  bool pump_until(Holds&& holds) {
    return eventually([&] {
      poller_.pump(now_);
      for (const auto& link : links_) link->tick(now_);
      return holds();
    });
  }
  void pass(TimePoint::duration time) {
    now_ += time;
    for (const auto& link : links_) link->tick(now_);
  }
  const Get& admit(Link& link, const std::string& key, TimePoint::duration time) {
    gets_.emplace_back(key, now_ + time);
    shared_->operations.fetch_add(1);
    link.admit(gets_.back(), now_);
    return gets_.back();
  }
  std::string get(Link& link) {
    const Get& request = admit(link, "k", milliseconds{5});
    EXPECT_TRUE(pump_until([&] { return request.code.has_value(); }));
    EXPECT_EQ(request.code, TransportCode::kOk);
    return request.answer;
  }
  [[nodiscard]] bool notes(const std::string& error) const {
    return shared_->latest_error.find(error) != std::string::npos;
  }

  ~Renewal() override {
    for (const auto& link : links_) link->shut_down();
  }

  // Whether requests wait for the end of a renewal: within 50 ms it is over.
  [[nodiscard]] bool finishes(const Link& link) const {
    return link.next_time() <= now_ + milliseconds{50};
  }

  static constexpr minutes kAgeMax{38};              // of connection_max_age, with its spread
  static constexpr std::chrono::seconds kPause{10};  // before a renewal that failed is tried again
  std::optional<ScriptedServer> server_;
  std::optional<SharedState> shared_;
  std::list<Get> gets_;
  Resolver resolver_;
  TestPoller poller_;
  std::vector<std::unique_ptr<Link>> links_;
  TimePoint now_ = std::chrono::steady_clock::now();
};

TEST_F(Renewal, RequestsUseTheFormerConnectionUntilTheNextOneIsGreeted) {
  serve([](std::size_t connection, const auto& words) -> std::optional<std::string> {
    if (connection == 1 && words[0] == "PING") return std::nullopt;
    return answered(connection, words);
  });
  Link& link = add_link();
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return server_->accepted() == 2; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(get(link), "0");
  EXPECT_EQ(poller_.connections(), 2U);
  pass(shared_->options.connect_timeout);
  EXPECT_EQ(poller_.connections(), 1U);
  EXPECT_TRUE(notes("stays in use: no answer to the greeting")) << shared_->latest_error;
  EXPECT_EQ(get(link), "0");
  EXPECT_EQ(link.refusal(), std::nullopt) << "one failure would have opened the breaker";
  pass(kPause);
  EXPECT_TRUE(pump_until([&] { return get(link) == "2"; }));
  EXPECT_EQ(poller_.connections(), 1U);
  EXPECT_EQ(shared_->connections, 2U);
  EXPECT_EQ(shared_->reconnects, 0U);
  EXPECT_EQ(shared_->links_ready, 1U);
}

TEST_F(Renewal, AServerThatCannotServeCostsNoConnection) {
  serve([](std::size_t connection, const auto& words) -> std::optional<std::string> {
    if (connection != 0 && words[0] == "PING") return "-LOADING dataset\r\n";
    return answered(connection, words);
  });
  Link& link = add_link();
  pass(kAgeMax);
  EXPECT_TRUE(pump_until([&] { return notes("stays in use: PING: LOADING dataset"); }));
  EXPECT_EQ(get(link), "0");
  EXPECT_EQ(poller_.connections(), 1U);
}

TEST_F(Renewal, ALostConnectionEndsIt) {
  serve([](std::size_t connection, const auto& words) -> std::optional<std::string> {
    if (connection == 1 && words[0] == "PING") return std::nullopt;
    if (words[0] == "GET" && words[1] == "bad") return "what Redis never says\r\n";
    return answered(connection, words);
  });
  Link& link = add_link();
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return server_->accepted() == 2; }));
  const Get& bad = admit(link, "bad", milliseconds{5});
  ASSERT_TRUE(pump_until([&] { return bad.code.has_value(); }));
  EXPECT_EQ(bad.code, TransportCode::kUnavailable);
  EXPECT_EQ(poller_.connections(), 0U);
  EXPECT_FALSE(link.is_ready());
  EXPECT_EQ(shared_->links_ready, 0U);
  pass(shared_->options.reconnect_backoff_max);
  ASSERT_TRUE(pump_until([&] { return link.is_ready(); }));
  EXPECT_EQ(get(link), "2");
}

TEST_F(Renewal, ANextConnectionThatBreaksWhileTheFormerOneIsFinishedHoldsUpNothing) {
  std::atomic<int> sent_to_the_former = 0;
  serve([&, stuck = false](std::size_t connection,
                           const auto& words) mutable -> std::optional<std::string> {
    stuck = stuck || (words[0] == "GET" && words[1] == "slow");
    if (!stuck || connection != 0) return answered(connection, words);
    if (words[0] == "GET" && words[1] == "k") ++sent_to_the_former;
    return std::nullopt;
  });
  Link& link = add_link();
  const Get& slow = admit(link, "slow", 2 * kAgeMax);
  pass(milliseconds{0});  // it is sent
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return finishes(link); }));
  admit(link, "k", minutes{1});
  server_->say(1, "+nobody has asked\r\n");
  EXPECT_TRUE(pump_until([&] { return notes("stays in use: the server sent a reply"); }));
  EXPECT_TRUE(pump_until([&] { return sent_to_the_former == 1; }));
  EXPECT_EQ(poller_.connections(), 1U);
  EXPECT_EQ(slow.code, std::nullopt);
}

TEST_F(Renewal, WhatExpiresWhileTheFormerConnectionIsFinishedIsNoFailureOfTheServer) {
  serve([stuck = false](std::size_t connection,
                        const auto& words) mutable -> std::optional<std::string> {
    stuck = stuck || (words[0] == "GET" && words[1] == "slow");
    if (stuck && connection == 0) return std::nullopt;
    return as_single_master(words);
  });
  Link& link = add_link();
  const Get& slow = admit(link, "slow", 2 * kAgeMax);
  pass(milliseconds{0});  // it is sent
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return finishes(link); }));
  const Get& waiting = admit(link, "k", milliseconds{5});
  pass(milliseconds{6});
  EXPECT_EQ(waiting.code, TransportCode::kTimeout);
  EXPECT_EQ(link.refusal(), std::nullopt) << "one failure would have opened the breaker";
  // A server that is too slow to finish keeps its connection for now.
  pass(milliseconds{50});
  EXPECT_EQ(poller_.connections(), 1U);
  EXPECT_TRUE(link.is_ready());
  EXPECT_EQ(slow.code, std::nullopt);
}

TEST_F(Renewal, WhatWaitsWhileTheFormerConnectionIsFinishedSurvivesItsLoss) {
  serve([stuck = false](std::size_t connection,
                        const auto& words) mutable -> std::optional<std::string> {
    stuck = stuck || (words[0] == "GET" && words[1] == "slow");
    if (stuck && connection == 0) return std::nullopt;
    return answered(connection, words);
  });
  Link& link = add_link();
  const Get& slow = admit(link, "slow", 2 * kAgeMax);
  pass(milliseconds{0});  // it is sent
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return finishes(link); }));
  const Get& waiting = admit(link, "k", minutes{1});
  server_->say(0, "what Redis never says\r\n");
  ASSERT_TRUE(pump_until([&] { return waiting.code.has_value(); }));
  EXPECT_EQ(slow.code, TransportCode::kUnavailable);
  EXPECT_EQ(waiting.code, TransportCode::kOk);
  EXPECT_EQ(waiting.answer, "1");
  EXPECT_EQ(poller_.connections(), 1U);
  EXPECT_EQ(shared_->links_ready, 1U);
  EXPECT_EQ(shared_->reconnects, 1U);
  EXPECT_EQ(shared_->failures, 1U);
  EXPECT_EQ(link.refusal(), std::nullopt) << "the next connection is well";
}

// Neither connection leads to the master.
TEST_F(Renewal, AServerThatTurnsOutToBeAReplicaIsLeftTogetherWithTheNextConnectionToIt) {
  serve([stuck = false](std::size_t connection,
                        const auto& words) mutable -> std::optional<std::string> {
    stuck = stuck || (words[0] == "GET" && words[1] == "slow");
    if (stuck && connection == 0) return std::nullopt;
    return answered(connection, words);
  });
  Link& link = add_link();
  admit(link, "slow", 2 * kAgeMax);
  pass(milliseconds{0});  // it is sent
  pass(kAgeMax);
  ASSERT_TRUE(pump_until([&] { return finishes(link); }));
  const Get& waiting = admit(link, "k", minutes{1});
  server_->say(0, "-READONLY You can't write against a read only replica.\r\n");
  ASSERT_TRUE(pump_until([&] { return waiting.code.has_value(); }));
  EXPECT_EQ(waiting.code, TransportCode::kUnavailable);
  EXPECT_EQ(poller_.connections(), 0U);
}

class Looks : public Renewal {
 protected:
  static constexpr std::chrono::seconds kBeforeTheUsualLook{9};

  // A link to a server that has a configuration with a gap or without one.
  Link& add_looking_link() {
    serve([this](std::size_t /*connection*/, const auto& words) -> std::optional<std::string> {
      if (words[0] != "GET" || words[1] != "p:!config") return as_single_master(words);
      ++looks_;
      if (nothing_) return "$-1\r\n";
      const std::string gap = missing_ ? R"("missing_before_ms":{"g:t":{"0":5}},)" : "";
      return resp_text("{" + gap +
                       R"("id_hash":"xxh3-48","key_prefix":"p","null_user_ids":[],)"
                       R"("reservation":{"max_life_ms":1},"retention_ms":1000,"write_format":3})");
    });
    Link& link = add_link();
    shared_->config.expect(
        {.key_prefix = "p", .retention = milliseconds{1000}, .null_user_ids = {}});
    shared_->config_generation.fetch_add(1);
    EXPECT_TRUE(pump_until([&] { return looks_ == 1; }));
    catch_up(link);
    return link;
  }
  // Whatever was sent before has been answered.
  void catch_up(Link& link) {
    const Get& later = admit(link, "k", minutes{1});
    ASSERT_TRUE(pump_until([&] { return later.code.has_value(); }));
  }
  void expect_no_look(Link& link) {
    const int before = looks_;
    catch_up(link);
    EXPECT_EQ(looks_, before);
  }
  void expect_look(Link& link, std::chrono::seconds after) {
    const int before = looks_;
    pass(after);
    ASSERT_TRUE(pump_until([&] { return looks_ == before + 1; })) << before;
    catch_up(link);
  }

  std::atomic<int> looks_ = 0;
  std::atomic<bool> missing_ = false;
  std::atomic<bool> nothing_ = false;  // not even a configuration
};

TEST_F(Looks, AStatedGapIsLookedAtAgainSoonUntilItIsClosed) {
  missing_ = true;
  Link& link = add_looking_link();
  const auto stated = [this] { return !shared_->config.missing().empty(); };
  EXPECT_TRUE(stated());
  expect_look(link, 2 * kBeforeTheUsualLook);
  missing_ = false;
  expect_look(link, std::chrono::seconds{1});
  ASSERT_TRUE(pump_until([&] { return !stated(); }));
  pass(kBeforeTheUsualLook);
  expect_no_look(link);
}

// An updater that has lost its connection as well states the loss a little later.
TEST_F(Looks, AfterAConnectionALossIsLookedForEverySecond) {
  Link& link = add_looking_link();
  for (int i = 0; i < 15; ++i) expect_look(link, std::chrono::seconds{1});
  pass(kBeforeTheUsualLook);
  expect_no_look(link);
  expect_look(link, std::chrono::seconds{2});
}

// Otherwise an updater that states one for the first time is heard of late.
TEST_F(Looks, AConfigurationThatIsNotThereIsLookedForEverySecond) {
  nothing_ = true;
  Link& link = add_looking_link();
  pass(std::chrono::seconds{20});
  catch_up(link);
  for (int i = 0; i < 5; ++i) expect_look(link, std::chrono::seconds{1});
}

}  // namespace renewal_test
}  // namespace fcap::redis
