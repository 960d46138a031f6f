#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "redis/pipeline.h"

namespace fcap::redis {
namespace pipeline_redirects_test {

using std::chrono::milliseconds;

constexpr Pipeline::TimePoint kStart{std::chrono::hours{1}};
constexpr std::string_view kAsking = "*1\r\n$6\r\nASKING\r\n";

class Recorder final : public Request {
 public:
  explicit Recorder(std::string commands, std::uint32_t count = 1) {
    wire = std::move(commands);
    command_count = count;
    deadline = kStart + milliseconds{5};
  }
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override {
    replies.emplace_back(index, reply.text);
  }
  void on_done(TransportCode code) noexcept override { done.push_back(code); }

  std::vector<std::pair<std::uint32_t, std::string>> replies;
  std::vector<TransportCode> done;
};

Reply text(std::string_view bytes) {
  return {Reply::Kind::kString, 0, bytes, {}};
}
Reply error(std::string_view bytes) {
  return {Reply::Kind::kError, 0, bytes, {}};
}

class PipelineRedirects : public ::testing::Test, private Redirects {
 protected:
  struct Redirected {
    Request* request;
    std::string error;
    bool operator==(const Redirected&) const = default;
  };
  using Taken = std::vector<Redirected>;

  void add(Recorder& request) {
    ++operations_;
    ++node_operations_;
    pipeline_.add(request, kStart);
  }
  std::string written() {
    std::string wire;
    pipeline_.write(wire);
    return wire;
  }

  std::atomic<std::size_t> operations_{0};
  std::atomic<std::size_t> node_operations_{0};
  Pipeline pipeline_{
      {.mget_keys_max = 1}, operations_, {.node_operations = &node_operations_, .redirects = this}};
  Taken taken_;

 private:
  void redirect(Request* request, std::string_view said) override {
    taken_.push_back({request, std::string(said)});
  }
};

TEST_F(PipelineRedirects, ARequestOfOneCommandIsHandedOnAndNotFinished) {
  Recorder first("<1>");
  Recorder second("<2>");
  add(first);
  add(second);
  EXPECT_EQ(written(), "<1><2>");
  EXPECT_TRUE(pipeline_.on_reply(error("MOVED 1 h:1")));
  EXPECT_TRUE(pipeline_.on_reply(error("ASK 2 h:2")));
  EXPECT_EQ(taken_, (Taken{{&first, "MOVED 1 h:1"}, {&second, "ASK 2 h:2"}}));
  EXPECT_TRUE(first.done.empty());
  EXPECT_TRUE(first.replies.empty());
  EXPECT_EQ(operations_, 0U);
  EXPECT_EQ(node_operations_, 0U);
  EXPECT_TRUE(pipeline_.idle());
}

TEST_F(PipelineRedirects, AnAnswerLikeThatIsNoErrorOfTheServer) {
  Recorder request("<1>");
  add(request);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("MOVED 1 h:1")));
  EXPECT_EQ(pipeline_.take_errors(), 0U);
  EXPECT_EQ(pipeline_.take_successes(), 1U);
  EXPECT_EQ(pipeline_.take_refusals(), 0U);
}

TEST_F(PipelineRedirects, OfSeveralCommandsEachIsAnsweredAndWhatItSaysIsNoted) {
  Recorder request("<1><2><3>", 3);
  add(request);
  written();
  EXPECT_TRUE(pipeline_.on_reply(text("a")));
  EXPECT_TRUE(pipeline_.on_reply(error("MOVED 1 h:1")));
  EXPECT_TRUE(pipeline_.on_reply(text("c")));
  EXPECT_EQ(taken_, (Taken{{nullptr, "MOVED 1 h:1"}}));
  ASSERT_EQ(request.replies.size(), 3U);
  EXPECT_EQ(request.replies[1].second, "MOVED 1 h:1");
  EXPECT_EQ(request.done, (std::vector{TransportCode::kOk}));
}

TEST_F(PipelineRedirects, AskingPrecedesTheCommandAndItsReplyReachesNobody) {
  Recorder command("<1>");
  Recorder get("key");
  get.form = Request::WireForm::kGetKey;
  Recorder neighbour("key");
  neighbour.form = Request::WireForm::kGetKey;
  command.asking = get.asking = true;
  add(command);
  add(neighbour);
  add(get);
  const std::string get_key = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
  EXPECT_EQ(written(), std::string(kAsking) + "<1>" + get_key + std::string(kAsking) + get_key);
  EXPECT_TRUE(pipeline_.on_reply(text("OK")));
  EXPECT_TRUE(command.replies.empty());
  EXPECT_TRUE(pipeline_.on_reply(text("one")));
  EXPECT_TRUE(pipeline_.on_reply(text("two")));
  EXPECT_TRUE(pipeline_.on_reply(text("OK")));
  EXPECT_TRUE(pipeline_.on_reply(text("three")));
  ASSERT_EQ(command.replies.size(), 1U);
  EXPECT_EQ(command.replies[0], (std::pair{0U, std::string("one")}));
  EXPECT_EQ(neighbour.replies[0].second, "two");
  EXPECT_EQ(get.replies[0].second, "three");
  EXPECT_TRUE(pipeline_.idle());
}

TEST_F(PipelineRedirects, AllThatJoinedAReadAreHandedOn) {
  Recorder first("key");
  Recorder second("key");
  first.form = second.form = Request::WireForm::kGetKey;
  second.may_join = true;
  add(first);
  add(second);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("MOVED 1 h:1")));
  EXPECT_EQ(taken_, (Taken{{&first, "MOVED 1 h:1"}, {&second, "MOVED 1 h:1"}}));
}

TEST_F(PipelineRedirects, ALateOneOnlyCorrectsTheMap) {
  Recorder request("<1>");
  add(request);
  written();
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{5}).count, 1U);
  EXPECT_TRUE(pipeline_.on_reply(error("MOVED 1 h:1")));
  EXPECT_EQ(taken_, (Taken{{nullptr, "MOVED 1 h:1"}}));
  EXPECT_EQ(request.done, (std::vector{TransportCode::kTimeout}));
}

TEST_F(PipelineRedirects, WhatElseAClusterSaysIsAnAnswer) {
  Recorder request("<1>");
  add(request);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("TRYAGAIN Multiple keys request during rehashing")));
  EXPECT_TRUE(taken_.empty());
  EXPECT_EQ(request.replies.size(), 1U);
  EXPECT_EQ(pipeline_.take_refusals(), 1U);
}

}  // namespace pipeline_redirects_test
}  // namespace fcap::redis
