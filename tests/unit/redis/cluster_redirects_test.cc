// Where the redirects of a cluster lead a request, and where they end.
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "redis/client.h"
#include "tests/support/scripted_server.h"

namespace fcap::redis {
namespace cluster_redirects_test {

using std::chrono::seconds;

constexpr int kNodes = 2;

class Get final : public Request {
 public:
  explicit Get(const std::string& key) {
    slot = slot_of(key);
    wire = key;
    form = WireForm::kGetKey;
    deadline = std::chrono::steady_clock::now() + seconds{30};
  }
  TransportCode on(Client& client) {
    client.submit(*this);
    ended_.acquire();
    return code_;
  }
  void on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept override {
    text = std::string(reply.text);
  }
  void on_done(TransportCode code) noexcept override {
    code_ = code;
    ended_.release();
  }

  std::string text;

 private:
  TransportCode code_ = TransportCode::kOverloaded;
  std::binary_semaphore ended_{0};
};

// Two nodes with half of the slots each. Both say of one key that the other one has it.
class ClusterRedirects : public ::testing::Test {
 protected:
  struct Read {
    std::size_t connection;
    std::string key;
  };

  void SetUp() override {
    for (int slots = 0; slots < kNodes; ++slots) {
      const auto has_it = [&](const std::string& key) { return slot_of(key) / 8192 == slots; };
      for (int i = 0; keys_.size() <= static_cast<std::size_t>(slots); ++i) {
        const std::string key = "key-" + std::to_string(i);
        if (has_it(key)) keys_.push_back(key);
      }
    }
    RedisOptions options;
    options.topology = RedisTopology::kCluster;
    options.addresses = {nodes_[0]->address()};
    options.direct_connections = 0;
    auto made = Client::create(options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    client_ = std::move(made).value();
    ASSERT_TRUE(eventually([this] { return client_->connected(); })) << client_->last_error();
  }

  std::unique_ptr<ScriptedServer> node(int number) {
    return std::make_unique<ScriptedServer>(
        [this, number](std::size_t connection, const ScriptedServer::Words& words) {
          return std::optional(answer(number, connection, words));
        });
  }
  std::string answer(int number, std::size_t connection, const ScriptedServer::Words& words) {
    if (words[0] == "CLUSTER" && words[1] == "INFO") {
      return resp_text("cluster_state:ok\r\ncluster_current_epoch:7\r\n");
    }
    if (words[0] == "CLUSTER") return resp_list({half(0), half(1)});
    if (words[0] != "GET") return as_single_master(words);
    const std::lock_guard lock(mutex_);
    reads_.at(static_cast<std::size_t>(number)).push_back({connection, words[1]});
    if (words[1] != kLost) return resp_text("of node " + std::to_string(number));
    return "-MOVED " + std::to_string(slot_of(kLost)) + " " +
           nodes_.at(static_cast<std::size_t>(1 - number))->address() + "\r\n";
  }
  std::string half(int number) {
    const int port = nodes_.at(static_cast<std::size_t>(number))->port();
    return resp_list({":" + std::to_string(number * 8192) + "\r\n",
                      ":" + std::to_string(number * 8192 + 8191) + "\r\n",
                      resp_list({resp_text("127.0.0.1"), ":" + std::to_string(port) + "\r\n",
                                 resp_text("node-" + std::to_string(number)), "*0\r\n"})});
  }

  // Everything else is answered by the node that has the key.
  void expect_served() {
    for (std::size_t number = 0; number < kNodes; ++number) {
      Get get(keys_[number]);
      EXPECT_EQ(get.on(*client_), TransportCode::kOk) << client_->last_error();
      EXPECT_EQ(get.text, "of node " + std::to_string(number));
    }
  }
  // How often they were asked for the key that neither has.
  int hunted() {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const auto& of_node : reads_) {
      for (const Read& read : of_node) count += read.key == kLost ? 1 : 0;
    }
    return count;
  }
  void expect_one_connection_each() {
    const std::lock_guard lock(mutex_);
    for (const auto& of_node : reads_) {
      for (const Read& read : of_node) {
        EXPECT_EQ(read.connection, of_node.front().connection) << read.key;
      }
    }
  }

  static constexpr const char* kLost = "lost";
  std::vector<std::string> keys_;  // one of each node
  std::mutex mutex_;
  std::array<std::vector<Read>, kNodes> reads_;  // guarded by mutex_
  std::array<std::unique_ptr<ScriptedServer>, kNodes> nodes_{node(0), node(1)};
  std::unique_ptr<Client> client_;
};

TEST_F(ClusterRedirects, ARequestThatIsSentInACircleEndsAfterThreeHops) {
  expect_served();
  const auto epoch = client_->connection_epoch();
  for (int times = 1; times <= 2; ++times) {
    Get get(kLost);
    EXPECT_EQ(get.on(*client_), TransportCode::kUnavailable);
    EXPECT_EQ(get.text, "") << "a redirect is no answer";
    EXPECT_EQ(hunted(), times * 4) << "once, and after each of three hops";
    const std::string error = client_->health().last_error;
    EXPECT_NE(error.find("a request was redirected too often: MOVED"), std::string::npos) << error;
  }
  expect_served();
  expect_one_connection_each();
  EXPECT_EQ(client_->connection_epoch(), epoch) << "no connection was made or lost";
}

}  // namespace cluster_redirects_test
}  // namespace fcap::redis
