// How the nodes of a cluster are asked for its slots, and what comes of it.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "redis/client.h"
#include "redis/cluster_watch.h"
#include "tests/support/scripted_server.h"

namespace fcap::redis {
namespace cluster_refresh_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

std::string node(const std::string& host, int port, const std::string& id) {
  return resp_list({resp_text(host), ":" + std::to_string(port) + "\r\n", resp_text(id), "*0\r\n"});
}

// CLUSTER SLOTS of one shard.
std::string one_shard(const std::vector<std::string>& nodes) {
  std::vector<std::string> elements{":0\r\n", ":16383\r\n"};
  elements.insert(elements.end(), nodes.begin(), nodes.end());
  return resp_list({resp_list(elements)});
}

std::string cluster_info(bool serves) {
  return resp_text("cluster_state:" + std::string(serves ? "ok" : "fail") +
                   "\r\ncluster_current_epoch:7\r\n");
}

// Where nobody listens.
std::string dead_address() {
  const ScriptedServer gone([](std::size_t, const ScriptedServer::Words&) { return std::nullopt; });
  return gone.address();
}

class ClusterRefresh : public ::testing::Test {
 protected:
  std::optional<std::string> answer(const ScriptedServer::Words& words) {
    if (words[1] == "INFO") return cluster_info(serves_);
    const std::lock_guard lock(mutex_);
    return slots_;
  }
  ScriptedServer::Answer answers() {
    return [this](std::size_t /*connection*/, const ScriptedServer::Words& words) {
      return answer(words);
    };
  }
  void tell_slots(std::string slots) {
    const std::lock_guard lock(mutex_);
    slots_ = std::move(slots);
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  std::unique_ptr<ClusterWatch> watch(const std::vector<std::string>& seeds) {
    std::vector<Address> addresses;
    for (const std::string& seed : seeds) addresses.push_back(parse_address(seed).value());
    began_ = Clock::now();
    auto made = std::make_unique<ClusterWatch>(
        options_, std::move(addresses), [] { return Credentials::Current{}; }, nodes_, map_,
        [this](LogLevel level, const std::string& text) {
          const std::lock_guard lock(mutex_);
          if (level == LogLevel::kWarning) warnings_.push_back(text);
        },
        [](const ClusterShape&) {});
    EXPECT_TRUE(made->start().ok());
    return made;
  }
  void expect_one_question_per_second(const ClusterWatch& watched) const {
    const auto asked = static_cast<Clock::rep>(watched.refreshes());
    EXPECT_LE(asked, 1 + (Clock::now() - began_) / seconds{1});
  }

  std::atomic<bool> serves_{true};
  RedisOptions options_;
  NodeTable nodes_;
  SlotMap map_;
  Clock::time_point began_;

 private:
  std::mutex mutex_;
  std::string slots_;                  // guarded by mutex_
  std::vector<std::string> warnings_;  // guarded by mutex_
};

TEST_F(ClusterRefresh, NodesThatAreNotBelievedAreAskedOnePerSecond) {
  const ScriptedServer master(answers());
  const ScriptedServer replica(answers());
  tell_slots(
      one_shard({node("127.0.0.1", master.port(), "m"), node("127.0.0.1", replica.port(), "r")}));
  const auto watched = watch({master.address()});
  ASSERT_TRUE(eventually([&] { return watched->shape() != nullptr; }));
  serves_ = false;
  watched->refresh_soon();
  // When both were asked, and the master once more as the one that the options name.
  EXPECT_TRUE(eventually([&] { return !watched->last_error().empty(); }));
  expect_one_question_per_second(*watched);
  EXPECT_GE(watched->refreshes(), 4U);
  EXPECT_NE(watched->last_error().find("may be cut off"), std::string::npos)
      << watched->last_error();
  serves_ = true;
  EXPECT_TRUE(eventually([&] { return watched->last_error().empty(); }));
  expect_one_question_per_second(*watched);
}

TEST_F(ClusterRefresh, ANodeThatDoesNotAnswerIsLeftForAnotherOne) {
  std::atomic<int> questions{0};
  const auto silence = [&](std::size_t /*connection*/, const ScriptedServer::Words& words) {
    if (words[1] == "SLOTS") ++questions;
    return std::optional<std::string>();
  };
  const ScriptedServer silent(silence);
  const ScriptedServer silent_too(silence);
  const ScriptedServer fit(answers());
  tell_slots(one_shard({node("127.0.0.1", fit.port(), "m")}));
  options_.connect_timeout = milliseconds{100};
  const auto watched = watch({silent.address(), silent_too.address(), fit.address()});
  ASSERT_TRUE(eventually([&] { return watched->shape() != nullptr; }));
  expect_one_question_per_second(*watched);
  // A refresh in which the third one was late as well has failed and begins again.
  const auto refreshes = 1 + warnings().size();
  EXPECT_LE(static_cast<std::size_t>(questions), 2 * refreshes) << "each of them once";
}

TEST_F(ClusterRefresh, ANodeThatIsNotReachedCostsNoTime) {
  const ScriptedServer fit(answers());
  tell_slots(one_shard({node("127.0.0.1", fit.port(), "m")}));
  const auto watched = watch({dead_address(), dead_address(), dead_address(), fit.address()});
  ASSERT_TRUE(eventually([&] { return watched->shape() != nullptr; }));
  EXPECT_EQ(watched->refreshes(), 1U);
  EXPECT_TRUE(warnings().empty());
}

TEST_F(ClusterRefresh, WhileNoSlotsAreKnownEachRefusalIsTold) {
  tell_slots("-ERR This instance has cluster support disabled\r\n");
  const ScriptedServer one(answers());
  const ScriptedServer other(answers());
  const auto watched = watch({one.address(), other.address()});
  ASSERT_TRUE(eventually([&] { return warnings().size() >= 2; }));
  expect_one_question_per_second(*watched);
  const auto names = [](const std::string& text, const ScriptedServer& server) {
    return text.find(server.address() + ": CLUSTER SLOTS: ") != std::string::npos;
  };
  const std::string first = warnings()[0];
  EXPECT_NE(names(first, one), names(first, other)) << first;
  const std::string second = warnings()[1];
  EXPECT_TRUE(names(second, one) && names(second, other)) << second;
}

struct Get final : Request {
  explicit Get(std::string key) {
    slot = slot_of(key);
    wire = std::move(key);
    form = WireForm::kGetKey;
  }
  void on_reply(std::uint32_t /*index*/, const Reply& /*reply*/) noexcept override {}
  void on_done(TransportCode /*code*/) noexcept override { done = true; }

  std::atomic<bool> done{true};
};

// The first lookup of this name fails (guest_test.cc).
TEST_F(ClusterRefresh, AReplicaIsLookedUpAgainWithEachRefresh) {
  std::atomic<bool> reached{false};
  const auto in_cluster = [&](const std::string& role, const ScriptedServer::Words& words) {
    if (words[0] == "CLUSTER") return answer(words);
    // Which makes the client ask for the slots again.
    if (words[0] == "GET") return std::optional<std::string>("-CLUSTERDOWN for a while\r\n");
    if (words[0] == "READONLY") reached = true;
    if (words[0] != "ROLE" || role == "master") return std::optional(as_single_master(words));
    return std::optional(resp_list(
        {resp_text("slave"), resp_text("127.0.0.1"), ":1\r\n", resp_text("connected"), ":0\r\n"}));
  };
  const ScriptedServer replica(
      [&](std::size_t, const ScriptedServer::Words& words) { return in_cluster("slave", words); });
  const ScriptedServer master(
      [&](std::size_t, const ScriptedServer::Words& words) { return in_cluster("master", words); });
  tell_slots(one_shard(
      {node("127.0.0.1", master.port(), "m"), node("fickle.invalid", replica.port(), "r")}));
  options_.topology = RedisTopology::kCluster;
  options_.addresses = {master.address()};
  options_.replica_reads = RedisReplicaReads::kWhenMasterFails;
  options_.breaker_failures = 0;
  Get get("k");  // outlives the client, which answers it
  const auto client = Client::create(options_);
  ASSERT_TRUE(client.ok()) << client.status().text();
  EXPECT_TRUE(eventually([&] {
    if (get.done.exchange(false)) {
      get.deadline = Clock::now() + seconds{1};
      client.value()->submit(get);
    }
    return reached.load();
  }));
}

}  // namespace cluster_refresh_test
}  // namespace fcap::redis
