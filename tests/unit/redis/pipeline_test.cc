#include "redis/pipeline.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::redis {
namespace pipeline_test {

using std::chrono::milliseconds;

constexpr Pipeline::TimePoint kStart{std::chrono::hours{1}};

class Recorder final : public Request {
 public:
  explicit Recorder(std::string commands, milliseconds due = milliseconds{5},
                    std::uint32_t count = 1) {
    wire = std::move(commands);
    command_count = count;
    deadline = kStart + due;
  }

  void on_reply(std::uint32_t index, const Reply& reply) noexcept override {
    EXPECT_EQ(index, replies.size());
    EXPECT_TRUE(done.empty());
    replies.emplace_back(reply.kind == Reply::Kind::kNil ? "nil" : reply.text);
  }
  void on_done(TransportCode code) noexcept override { done.push_back(code); }

  std::vector<std::string> replies;
  std::vector<TransportCode> done;
};

Recorder get(std::string key, milliseconds due = milliseconds{5}) {
  Recorder request(std::move(key), due);
  request.form = Request::WireForm::kGetKey;
  request.may_join = true;
  return request;
}

Reply text(std::string_view bytes) {
  return {Reply::Kind::kString, 0, bytes, {}};
}
Reply error(std::string_view bytes) {
  return {Reply::Kind::kError, 0, bytes, {}};
}

const std::vector<TransportCode> done_ok = {TransportCode::kOk};
const std::vector<TransportCode> timed_out = {TransportCode::kTimeout};
const std::vector<TransportCode> connection_lost = {TransportCode::kUnavailable};
using Texts = std::vector<std::string>;

class PipelineTest : public ::testing::Test {
 protected:
  explicit PipelineTest(std::size_t mget_keys_max = 1)
      : pipeline_({.mget_keys_max = mget_keys_max}, operations_) {}

  void add(Recorder& request) {
    ++operations_;
    pipeline_.add(request, kStart);
  }
  std::string written() {
    std::string wire;
    pipeline_.write(wire);
    return wire;
  }

  std::atomic<std::size_t> operations_{0};
  Pipeline pipeline_;
};

class MgetPipelineTest : public PipelineTest {
 protected:
  MgetPipelineTest() : PipelineTest(3) {}
};

TEST_F(PipelineTest, MatchesRepliesToRequestsByOrder) {
  Recorder first("<1>");
  Recorder second("<2a><2b>", milliseconds{5}, 2);
  add(first);
  add(second);
  EXPECT_EQ(written(), "<1><2a><2b>");
  EXPECT_TRUE(pipeline_.on_reply(text("1")));
  EXPECT_TRUE(pipeline_.on_reply(text("2a")));
  EXPECT_TRUE(second.done.empty());
  EXPECT_TRUE(pipeline_.on_reply(text("2b")));
  EXPECT_EQ(first.replies, Texts{"1"});
  EXPECT_EQ(second.replies, (Texts{"2a", "2b"}));
  EXPECT_EQ(first.done, done_ok);
  EXPECT_EQ(second.done, done_ok);
  EXPECT_EQ(operations_, 0U);
  EXPECT_TRUE(pipeline_.take_successes() != 0);
}

TEST_F(PipelineTest, ErrorsAreCountedWithTheServersWords) {
  Recorder first("<1>");
  Recorder second("<2>");
  add(first);
  add(second);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("NOPERM no permission")));
  EXPECT_TRUE(pipeline_.on_reply(error("NOSCRIPT no matching script")));  // expected, and repaired
  EXPECT_EQ(pipeline_.take_errors(), 1U);
  EXPECT_EQ(pipeline_.take_errors(), 0U);
  EXPECT_EQ(pipeline_.last_error(), "NOPERM no permission");
}

TEST_F(PipelineTest, AServerThatCannotServeHasFailedOneThatRefusesARequestHasNot) {
  for (const char* cannot : {"LOADING x", "MASTERDOWN x", "CLUSTERDOWN x", "TRYAGAIN x"}) {
    Recorder request("<1>");
    add(request);
    written();
    EXPECT_TRUE(pipeline_.on_reply(error(cannot)));
    EXPECT_EQ(pipeline_.take_refusals(), 1U) << cannot;
    EXPECT_EQ(pipeline_.take_successes(), 0U) << cannot;
  }
  Recorder refused("<1>");
  add(refused);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("OOM command not allowed")));
  EXPECT_EQ(pipeline_.take_refusals(), 0U);
  EXPECT_EQ(pipeline_.take_successes(), 1U);
}

TEST_F(PipelineTest, ADeadlineThatLeavesTheServerNoTimeIsNoFailureOfTheServer) {
  Recorder hurried("<1>", milliseconds{0});
  hurried.deadline = kStart + std::chrono::microseconds{900};
  add(hurried);
  written();
  const auto expired = pipeline_.expire(kStart + milliseconds{1});
  EXPECT_EQ(expired.count, 1U);
  EXPECT_EQ(expired.failures, 0U);
  EXPECT_EQ(hurried.done, timed_out);
}

TEST_F(PipelineTest, WhatIsExcusedIsNoFailureOfTheServer) {
  Recorder sent("<1>", milliseconds{5});
  Recorder waiting("<2>", milliseconds{5});
  Recorder later("<3>", milliseconds{5});
  operations_ = 3;
  pipeline_.add(sent, kStart);
  written();
  pipeline_.add(waiting, kStart);
  pipeline_.excuse();
  pipeline_.add(later, kStart);
  written();
  const auto expired = pipeline_.expire(kStart + milliseconds{5});
  EXPECT_EQ(expired.count, 3U);
  EXPECT_EQ(expired.failures, 1U);
}

TEST_F(PipelineTest, APatientRequestWaitsForAsLongAsTheServerAnswers) {
  Recorder hurried("<1>", milliseconds{2'000});
  Recorder sent("<2>", milliseconds{2'000});
  Recorder waiting("<3>", milliseconds{2'000});
  sent.patient = waiting.patient = true;
  add(hurried);
  add(sent);
  written();
  add(waiting);
  pipeline_.note_progress(kStart + milliseconds{1'900});
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{2'000}).count, 1U);
  EXPECT_EQ(hurried.done, timed_out);
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{2'899}).count, 0U);
  EXPECT_EQ(pipeline_.next_deadline(), kStart + milliseconds{2'900});
  pipeline_.note_progress(kStart + milliseconds{2'899});
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{2'900}).count, 0U);
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{3'899}).failures, 2U);
  EXPECT_EQ(sent.done, timed_out);
  EXPECT_EQ(waiting.done, timed_out);
  pipeline_.find_oldest_tombstone();
  EXPECT_EQ(pipeline_.oldest_tombstone(), kStart + milliseconds{2'000});
}

TEST_F(PipelineTest, NoRequestIsPatientForEver) {
  Recorder request("<1>", milliseconds{2'000});
  request.patient = true;
  add(request);
  written();
  pipeline_.note_progress(kStart + milliseconds{31'999});
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{31'999}).count, 0U);
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{32'000}).count, 1U);
}

TEST_F(PipelineTest, AReplyThatNobodyAskedForIsRefused) {
  EXPECT_FALSE(pipeline_.on_reply(text("?")));
  Recorder waiting("<1>");
  add(waiting);
  EXPECT_FALSE(pipeline_.on_reply(text("?")));
  Recorder without_commands("", milliseconds{5}, 0);
  add(without_commands);
  written();
  EXPECT_TRUE(pipeline_.on_reply(text("1")) && !pipeline_.on_reply(text("?")));
}

TEST_F(PipelineTest, ALateReplyIsSwallowedAndReachesNobodyElse) {
  Recorder late("<late1><late2>", milliseconds{5}, 2);
  Recorder next("<next>", milliseconds{50});
  add(late);
  add(next);
  written();
  EXPECT_TRUE(pipeline_.on_reply(text("late1")));
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{5}).failures, 1U);
  EXPECT_EQ(late.done, timed_out);
  EXPECT_TRUE(next.done.empty());
  EXPECT_EQ(operations_, 2U);  // the tombstone still takes up room

  EXPECT_TRUE(pipeline_.on_reply(text("late2")));
  EXPECT_EQ(late.replies, Texts{"late1"});
  EXPECT_FALSE(pipeline_.take_successes() != 0);
  EXPECT_EQ(operations_, 1U);
  EXPECT_TRUE(pipeline_.on_reply(text("next")));
  EXPECT_EQ(next.replies, Texts{"next"});
}

TEST_F(PipelineTest, ARequestThatExpiresUnsentIsNeverSent) {
  Recorder expired("<expired>", milliseconds{1});
  Recorder alive("<alive>", milliseconds{9});
  add(expired);
  add(alive);
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{1}).failures, 1U);
  EXPECT_EQ(expired.done, timed_out);
  EXPECT_EQ(operations_, 1U);
  EXPECT_EQ(written(), "<alive>");
}

TEST_F(PipelineTest, DeadlinesAreKeptWhateverTheirOrder) {
  Recorder slow("<slow>", milliseconds{500});
  Recorder quick("<quick>", milliseconds{2});
  add(slow);
  add(quick);
  written();
  EXPECT_LE(pipeline_.next_deadline(), kStart + milliseconds{2});
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{1}).failures, 0U);
  EXPECT_EQ(pipeline_.expire(kStart + milliseconds{2}).failures, 1U);
  EXPECT_EQ(quick.done, timed_out);
  EXPECT_TRUE(slow.done.empty());
  EXPECT_LE(pipeline_.next_deadline(), kStart + milliseconds{500});
}

TEST_F(PipelineTest, TheOldestTombstoneIsTheLongestOverdueOne) {
  Recorder slow("<slow>", milliseconds{7});
  Recorder quick("<quick>", milliseconds{2});
  add(slow);
  add(quick);
  written();
  EXPECT_EQ(pipeline_.oldest_tombstone(), Pipeline::TimePoint::max());
  pipeline_.expire(kStart + milliseconds{8});
  EXPECT_EQ(pipeline_.oldest_tombstone(), kStart + milliseconds{2});
  EXPECT_TRUE(pipeline_.on_reply(text("slow")));
  EXPECT_TRUE(pipeline_.on_reply(text("quick")));
  pipeline_.find_oldest_tombstone();
  EXPECT_EQ(pipeline_.oldest_tombstone(), Pipeline::TimePoint::max());
}

TEST_F(PipelineTest, ALostConnectionFinishesWhatWasSentAndForgetsTombstones) {
  Recorder expired("<expired>", milliseconds{1});
  Recorder sent("<sent>");
  add(expired);
  add(sent);
  written();
  pipeline_.expire(kStart + milliseconds{1});
  EXPECT_EQ(pipeline_.abandon_sent(TransportCode::kUnavailable), 1U);
  EXPECT_EQ(sent.done, connection_lost);
  EXPECT_EQ(expired.done, timed_out);
  EXPECT_EQ(operations_, 0U);
  EXPECT_FALSE(pipeline_.on_reply(text("?")));
}

TEST_F(PipelineTest, WhatMayGoOverOneConnectionOnlyDoesNotWaitForTheNext) {
  Recorder bound("<bound>");
  bound.epoch = 7;
  Recorder free("<free>");
  add(bound);
  add(free);
  pipeline_.abandon_bound(TransportCode::kUnavailable);
  EXPECT_EQ(bound.done, connection_lost);
  EXPECT_TRUE(free.done.empty());
  EXPECT_EQ(operations_, 1U);
  EXPECT_EQ(written(), "<free>");
}

TEST_F(PipelineTest, OwnRequestsGoFirstAndCountAsNoOperation) {
  Recorder waiting("<waiting>");
  Recorder own("<own>");
  add(waiting);
  std::string wire;
  pipeline_.write_own(own, wire);
  pipeline_.write(wire);
  EXPECT_EQ(wire, "<own><waiting>");
  EXPECT_TRUE(pipeline_.on_reply(text("own")));
  EXPECT_EQ(own.done, done_ok);
  EXPECT_FALSE(pipeline_.take_successes() != 0);
  EXPECT_EQ(operations_, 1U);
  EXPECT_EQ(pipeline_.abandon_sent(TransportCode::kUnavailable), 1U);
}

TEST_F(PipelineTest, NotesThatTheServerIsReadOnly) {
  Recorder write("<write>");
  add(write);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("READONLY You can't write against a read only replica.")));
  EXPECT_TRUE(pipeline_.take_readonly());
  EXPECT_FALSE(pipeline_.take_readonly());
  EXPECT_EQ(write.done, done_ok);
}

TEST_F(PipelineTest, StopsWritingWhenThePeerDoesNotRead) {
  std::vector<std::unique_ptr<Recorder>> requests;
  for (int i = 0; i < 1000; ++i) {
    requests.push_back(std::make_unique<Recorder>(std::string(1024, 'x')));
    add(*requests.back());
  }
  const std::size_t bytes = written().size();
  EXPECT_GE(bytes, std::size_t{256} << 10U);
  EXPECT_LT(bytes, std::size_t{258} << 10U);
  EXPECT_EQ(pipeline_.in_flight(), bytes / 1024);
}

TEST_F(MgetPipelineTest, GetsThatWaitTogetherGoOutAsOne) {
  Recorder a = get("a");
  Recorder b = get("b");
  Recorder other("<other>");
  Recorder c = get("c");
  for (Recorder* request : {&a, &b, &other, &c}) add(*request);
  EXPECT_EQ(written(),
            "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n<other>*2\r\n$3\r\nGET\r\n$1\r\nc\r\n");
  const std::vector<Reply> values = {text("A"), {}};
  EXPECT_TRUE(pipeline_.on_reply({Reply::Kind::kArray, 0, {}, values}));
  EXPECT_TRUE(pipeline_.on_reply(text("other")));
  EXPECT_TRUE(pipeline_.on_reply(text("C")));
  EXPECT_EQ(a.replies, Texts{"A"});
  EXPECT_EQ(b.replies, Texts{"nil"});
  EXPECT_EQ(c.replies, Texts{"C"});
  EXPECT_EQ(a.done, done_ok);
  EXPECT_EQ(operations_, 0U);
}

TEST_F(MgetPipelineTest, NoMoreKeysThanAllowedShareACommand) {
  std::vector<std::unique_ptr<Recorder>> requests;
  for (int i = 0; i < 7; ++i) {
    requests.push_back(std::make_unique<Recorder>(get(std::to_string(i))));
    add(*requests.back());
  }
  const std::string wire = written();
  EXPECT_NE(wire.find("*4\r\n$4\r\nMGET\r\n$1\r\n3\r\n"), std::string::npos) << wire;
  EXPECT_TRUE(wire.ends_with("*2\r\n$3\r\nGET\r\n$1\r\n6\r\n")) << wire;
}

TEST_F(MgetPipelineTest, NeighbouringReadsOfOneKeyAreOneRead) {
  Recorder a = get("a");
  Recorder late = get("b", milliseconds{1});
  Recorder b = get("b");
  Recorder again = get("b");
  Recorder c = get("c");
  Recorder d = get("d");
  for (Recorder* request : {&a, &late, &b, &again, &c, &d}) add(*request);
  EXPECT_EQ(written(),
            "*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
            "*2\r\n$3\r\nGET\r\n$1\r\nd\r\n");
  pipeline_.expire(kStart + milliseconds{1});
  const std::vector<Reply> values = {text("A"), text("B"), text("C")};
  EXPECT_TRUE(pipeline_.on_reply({Reply::Kind::kArray, 0, {}, values}));
  EXPECT_TRUE(late.replies.empty());
  for (const Recorder* request : {&b, &again}) {
    EXPECT_EQ(request->replies, Texts{"B"});
    EXPECT_EQ(request->done, done_ok);
  }
  EXPECT_EQ(c.replies, Texts{"C"});
  EXPECT_TRUE(d.replies.empty());
  EXPECT_TRUE(pipeline_.on_reply(text("D")));
  EXPECT_EQ(d.replies, Texts{"D"});
  EXPECT_EQ(operations_, 0U);
}

TEST_F(MgetPipelineTest, AReadOfItsOwnJoinsNone) {
  Recorder first = get("a");
  Recorder own = get("a");
  own.may_join = false;
  Recorder last = get("a");
  for (Recorder* request : {&first, &own, &last}) add(*request);
  EXPECT_EQ(written(), "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\na\r\n");
}

TEST_F(MgetPipelineTest, AReadDoesNotJoinOneThatIsOnItsWay) {
  Recorder before = get("a");
  Recorder joined = get("a");
  add(before);
  add(joined);
  EXPECT_EQ(written(), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  Recorder after = get("a");
  add(after);
  EXPECT_EQ(written(), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  EXPECT_TRUE(pipeline_.on_reply(text("old")));
  EXPECT_EQ(before.replies, Texts{"old"});
  EXPECT_EQ(joined.replies, Texts{"old"});
  EXPECT_TRUE(after.replies.empty());
  EXPECT_TRUE(pipeline_.on_reply(text("new")));
  EXPECT_EQ(after.replies, Texts{"new"});
}

TEST_F(MgetPipelineTest, AReadDoesNotJoinOneAcrossAWrite) {
  Recorder before = get("a");
  Recorder write("<append>");
  Recorder after = get("a");
  for (Recorder* request : {&before, &write, &after}) add(*request);
  EXPECT_EQ(written(), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n<append>*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
}

TEST_F(MgetPipelineTest, ATombstoneInsideAGroupSwallowsItsElementOnly) {
  Recorder a = get("a");
  Recorder late = get("late", milliseconds{1});
  Recorder c = get("c");
  for (Recorder* request : {&a, &late, &c}) add(*request);
  written();
  pipeline_.expire(kStart + milliseconds{1});
  const std::vector<Reply> values = {text("A"), text("LATE"), text("C")};
  EXPECT_TRUE(pipeline_.on_reply({Reply::Kind::kArray, 0, {}, values}));
  EXPECT_EQ(a.replies, Texts{"A"});
  EXPECT_TRUE(late.replies.empty());
  EXPECT_EQ(late.done, timed_out);
  EXPECT_EQ(c.replies, Texts{"C"});
}

TEST_F(MgetPipelineTest, AnExpiredGetIsLeftOutOfTheGroup) {
  Recorder a = get("a");
  Recorder late = get("late", milliseconds{1});
  Recorder c = get("c");
  for (Recorder* request : {&a, &late, &c}) add(*request);
  pipeline_.expire(kStart + milliseconds{1});
  EXPECT_EQ(written(), "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nc\r\n");
}

TEST_F(MgetPipelineTest, AGroupsErrorReachesEachOfItsRequests) {
  Recorder a = get("a");
  Recorder b = get("b");
  add(a);
  add(b);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("LOADING")));
  EXPECT_EQ(a.replies, Texts{"LOADING"});
  EXPECT_EQ(b.replies, Texts{"LOADING"});
}

TEST_F(MgetPipelineTest, AServerThatRefusesMgetGetsPlainGetsFromThenOn) {
  for (const std::string_view refusal : {"CROSSSLOT Keys don't hash", "NOPERM no mget for you"}) {
    std::atomic<std::size_t> operations{3};
    Pipeline pipeline({.mget_keys_max = 3}, operations);
    Recorder a = get("a");
    Recorder late = get("late", milliseconds{1});
    Recorder c = get("c");
    for (Recorder* request : {&a, &late, &c}) pipeline.add(*request, kStart);
    std::string wire;
    pipeline.write(wire);
    pipeline.expire(kStart + milliseconds{1});
    EXPECT_TRUE(pipeline.on_reply(error(refusal)));
    EXPECT_EQ(operations, 2U);
    wire.clear();
    pipeline.write(wire);
    EXPECT_EQ(wire, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nc\r\n");
    EXPECT_TRUE(pipeline.on_reply(text("A")));
    EXPECT_TRUE(pipeline.on_reply(text("C")));
    EXPECT_EQ(a.replies, Texts{"A"});
    EXPECT_EQ(c.replies, Texts{"C"});
  }
}

TEST_F(MgetPipelineTest, ReadsThatHadJoinedAreSentAgainWhenMgetIsRefused) {
  Recorder a = get("a");
  Recorder b = get("b");
  Recorder again = get("b");
  for (Recorder* request : {&a, &b, &again}) add(*request);
  written();
  EXPECT_TRUE(pipeline_.on_reply(error("CROSSSLOT Keys don't hash")));
  EXPECT_EQ(written(), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n");
  EXPECT_TRUE(pipeline_.on_reply(text("A")));
  EXPECT_TRUE(pipeline_.on_reply(text("B")));
  EXPECT_EQ(a.replies, Texts{"A"});
  EXPECT_EQ(b.replies, Texts{"B"});
  EXPECT_EQ(again.replies, Texts{"B"});
  EXPECT_EQ(operations_, 0U);
}

TEST_F(MgetPipelineTest, AnAnswerOfTheWrongShapeIsRefused) {
  Recorder a = get("a");
  Recorder b = get("b");
  add(a);
  add(b);
  written();
  const std::vector<Reply> one = {text("A")};
  EXPECT_FALSE(pipeline_.on_reply({Reply::Kind::kArray, 0, {}, one}));
  EXPECT_FALSE(pipeline_.on_reply(text("A")));
}

}  // namespace pipeline_test
}  // namespace fcap::redis
