#include "checker/read_state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::checker {
namespace read_state_test {

// --- The table.

// arrive() with an executor is an event of its own.
enum class ReadEvent { kArrive, kArriveToPassOn, kKept, kLeaveSubmit, kClaim, kEnd, kLeave };

// What an event gives; kTooLate is no, and kAnswer is yes.
enum class EventResult { kNo, kYes, kKeep };

constexpr unsigned kSubmitted = 1;
constexpr unsigned kInside = 2;
constexpr unsigned kKept = 4;
constexpr unsigned kClaimed = 8;
constexpr unsigned kEnded = 16;

struct TableRow {
  ReadEvent event;
  unsigned has;
  unsigned lacks;
  unsigned gets;
  unsigned loses;
  EventResult result;
};

// As in read_state.h: of an event's rows, the first that fits counts.
constexpr TableRow kTable[] = {
    {ReadEvent::kArrive, kClaimed, 0, 0, 0, EventResult::kNo},
    {ReadEvent::kArrive, kSubmitted, 0, kClaimed, 0, EventResult::kYes},
    {ReadEvent::kArrive, 0, 0, kInside, 0, EventResult::kKeep},
    {ReadEvent::kArriveToPassOn, kClaimed, 0, 0, 0, EventResult::kNo},
    {ReadEvent::kArriveToPassOn, 0, 0, kInside, 0, EventResult::kKeep},
    {ReadEvent::kKept, kSubmitted, kClaimed, kKept, 0, EventResult::kYes},
    {ReadEvent::kKept, 0, 0, kKept, 0, EventResult::kNo},
    {ReadEvent::kLeaveSubmit, kKept, kClaimed, kSubmitted, 0, EventResult::kYes},
    {ReadEvent::kLeaveSubmit, 0, 0, kSubmitted, 0, EventResult::kNo},
    {ReadEvent::kClaim, kClaimed, 0, 0, 0, EventResult::kNo},
    {ReadEvent::kClaim, 0, 0, kClaimed, 0, EventResult::kYes},
    {ReadEvent::kEnd, kInside, 0, kEnded, 0, EventResult::kNo},
    {ReadEvent::kEnd, 0, 0, kEnded, 0, EventResult::kYes},
    {ReadEvent::kLeave, kEnded, 0, 0, kInside, EventResult::kYes},
    {ReadEvent::kLeave, 0, 0, 0, kInside, EventResult::kNo},
};

const TableRow& row_of(ReadEvent event, unsigned word) {
  return *std::find_if(std::begin(kTable), std::end(kTable), [&](const TableRow& row) {
    return row.event == event && (word & row.has) == row.has && (word & row.lacks) == 0;
  });
}

EventResult cause(ReadState& state, ReadEvent event) {
  const auto yes_if = [](bool yes) { return yes ? EventResult::kYes : EventResult::kNo; };
  switch (event) {
    case ReadEvent::kKept:
      return yes_if(state.kept());
    case ReadEvent::kLeaveSubmit:
      return yes_if(state.leave_submit());
    case ReadEvent::kClaim:
      return yes_if(state.claim());
    case ReadEvent::kEnd:
      return yes_if(state.end());
    case ReadEvent::kLeave:
      return yes_if(state.leave());
    default:
      break;
  }
  const ReadState::ReadArrival arrival = state.arrive(event == ReadEvent::kArriveToPassOn);
  if (arrival == ReadState::ReadArrival::kKeep) return EventResult::kKeep;
  return yes_if(arrival == ReadState::ReadArrival::kAnswer);
}

// All sequences of events that one read can see: each is played on a new ReadState, which must say
// at each event what the table says.
class TableWalk {
 public:
  explicit TableWalk(ReadEvent arrival) : arrival_(arrival) { go_on_from(0); }

  std::set<unsigned> words;
  std::set<const TableRow*> rows;

 private:
  [[nodiscard]] std::ptrdiff_t times(ReadEvent event) const {
    return std::count(path_.begin(), path_.end(), event);
  }

  [[nodiscard]] bool can_come(ReadEvent event, unsigned word) const {
    if (event == ReadEvent::kClaim) return times(event) < 3;
    if (times(event) > 0) return false;
    switch (event) {
      case ReadEvent::kKept:
        return (word & kInside) != 0;
      case ReadEvent::kLeave:
        return (word & kInside) != 0 && (word & kKept) != 0;
      case ReadEvent::kEnd:
        return (word & kClaimed) != 0;
      default:
        return event == arrival_ || event == ReadEvent::kLeaveSubmit;
    }
  }

  void go_on_from(unsigned word) {
    words.insert(word);
    for (const ReadEvent event : {arrival_, ReadEvent::kKept, ReadEvent::kLeaveSubmit,
                                  ReadEvent::kClaim, ReadEvent::kEnd, ReadEvent::kLeave}) {
      if (!can_come(event, word)) continue;
      const TableRow& row = row_of(event, word);
      rows.insert(&row);
      path_.push_back(event);
      results_.push_back(row.result);
      ReadState state;
      std::vector<EventResult> results;
      for (const ReadEvent each : path_) results.push_back(cause(state, each));
      ASSERT_EQ(results, results_) << "after " << ::testing::PrintToString(path_);
      go_on_from((word | row.gets) & ~row.loses);
      path_.pop_back();
      results_.pop_back();
    }
  }

  ReadEvent arrival_;
  std::vector<ReadEvent> path_;
  std::vector<EventResult> results_;
};

TEST(ReadState, DoesWhatItsTableSaysInEachStateThatCanBeReached) {
  const TableWalk usual(ReadEvent::kArrive);
  const TableWalk by_executor(ReadEvent::kArriveToPassOn);
  std::set<unsigned> possible;
  for (unsigned word = 0; word < 2 * kEnded; ++word) {
    if ((word & kEnded) == 0 || (word & kClaimed) != 0) possible.insert(word);
  }
  EXPECT_EQ(usual.words, possible);
  EXPECT_EQ(by_executor.words, possible);
  std::set<const TableRow*> rows = usual.rows;
  rows.insert(by_executor.rows.begin(), by_executor.rows.end());
  EXPECT_EQ(rows.size(), std::size(kTable));
}

TEST(ReadState, ASecondEndForgetsNothing) {
  ReadState state;
  EXPECT_TRUE(state.claim());
  EXPECT_TRUE(state.end());
  EXPECT_FALSE(state.end());
  state.reset();
  EXPECT_TRUE(state.claim());
}

// --- Threads.

struct Cast {
  bool asks_store = true;
  bool by_executor = false;
  bool is_canceled = false;
  bool ends_early = false;  // a batch whose time is over, or the end of the Checker
};

// One read and all who have to do with it, as threads that take one step at a time. A step is one
// event, and what its thread does to the owner before it: it could not be done later.
class Play {
 public:
  enum Thread : std::uint8_t { kCall, kStore, kTask, kCancel, kEarly, kThreads };
  using Path = std::vector<Thread>;

  Play(const Cast& cast, Path path) : cast_(cast), path_(std::move(path)) {
    if (cast.asks_store) {
      then(kCall, "leave_submit", [this] {
        is_submitted_ = true;
        pass_on_if(kCall, state_.leave_submit());
      });
      then(kStore, "arrive", [this] { arrive(); });
    } else {
      is_kept_ = true;
      pass_on_if(kCall, true);
    }
    if (cast.is_canceled) then(kCancel, "claim", [this] { end_if(kCancel, state_.claim()); });
    if (cast.ends_early) then(kEarly, "claim", [this] { end_if(kEarly, state_.claim()); });
    for (const Thread thread : path_) {
      const ThreadStep step = std::move(steps_[thread].back());
      steps_[thread].pop_back();
      step.take();
    }
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  [[nodiscard]] bool can_go_on(Thread thread) const { return !steps_[thread].empty(); }
  [[nodiscard]] int answers() const { return answers_; }
  [[nodiscard]] int forgotten() const { return forgotten_; }

  // The same of two plays that go on in the same way.
  [[nodiscard]] std::string scene() const {
    std::string text = std::to_string(answers_) + std::to_string(forgotten_);
    for (const auto& steps : steps_) {
      text += '|';
      for (const ThreadStep& step : steps) text += step.name;
    }
    return text;
  }

 private:
  struct ThreadStep {
    std::string name;
    std::function<void()> take;
  };

  // What was said last is done first.
  void then(Thread thread, std::string name, std::function<void()> take) {
    steps_[thread].push_back({std::move(name), std::move(take)});
  }

  void arrive() {
    const ReadState::ReadArrival arrival = state_.arrive(cast_.by_executor);
    if (arrival == ReadState::ReadArrival::kAnswer) {
      EXPECT_TRUE(is_submitted_) << "on the stack of the call that asked: " << told();
      EXPECT_FALSE(cast_.by_executor) << told();
      end_if(kStore, true);
    }
    if (arrival != ReadState::ReadArrival::kKeep) return;
    then(kStore, "leave", [this] {
      touch_owner(kStore);
      forget_if(kStore, state_.leave());
    });
    then(kStore, "kept", [this] {
      touch_owner(kStore);
      is_kept_ = true;
      pass_on_if(kStore, state_.kept());
    });
  }

  void pass_on_if(Thread thread, bool yes) {
    if (!yes) return;
    const auto run = [this](Thread by) {
      then(by, "run", [this, by] {
        EXPECT_TRUE(is_kept_) << told();
        end_if(by, state_.claim());
      });
    };
    if (!cast_.by_executor) return run(thread);
    then(thread, "hand_over", [this, thread, run] {
      touch_owner(thread);
      run(kTask);
    });
  }

  void end_if(Thread thread, bool claimed) {
    if (!claimed) return;
    ++answers_;
    then(thread, "end", [this, thread] {
      touch_owner(thread);
      forget_if(thread, state_.end());
    });
  }

  void forget_if(Thread thread, bool yes) {
    if (!yes) return;
    then(thread, "forget", [this, thread] {
      touch_owner(thread);
      ++forgotten_;
    });
  }

  // The owner may be gone once it has forgotten the read, but not for the call that asked.
  void touch_owner(Thread thread) {
    if (thread == kCall) return;
    EXPECT_EQ(forgotten_, 0) << told();
  }

  [[nodiscard]] std::string told() const { return ::testing::PrintToString(path_); }

  const Cast cast_;
  const Path path_;
  ReadState state_;
  std::array<std::vector<ThreadStep>, kThreads> steps_;
  bool is_submitted_ = false;
  bool is_kept_ = false;
  int answers_ = 0;
  int forgotten_ = 0;
};

// Every order in which the threads can take their steps; returns how many scenes there are.
std::size_t play_all(const Cast& cast) {
  std::set<std::string> scenes;
  std::vector<Play::Path> left{{}};
  while (!left.empty() && !::testing::Test::HasFailure()) {
    Play::Path path = std::move(left.back());
    left.pop_back();
    const Play play(cast, path);
    if (!scenes.insert(play.scene()).second) continue;
    bool over = true;
    for (std::uint8_t i = 0; i < Play::kThreads; ++i) {
      const auto thread = static_cast<Play::Thread>(i);
      if (!play.can_go_on(thread)) continue;
      over = false;
      path.push_back(thread);
      left.push_back(path);
      path.pop_back();
    }
    if (!over) continue;
    EXPECT_EQ(play.answers(), 1) << ::testing::PrintToString(path);
    EXPECT_EQ(play.forgotten(), 1) << ::testing::PrintToString(path);
  }
  return scenes.size();
}

TEST(ReadState, InEachOrderOneAnswersAndTheOwnerIsLeftAloneOnceItForgets) {
  std::size_t scenes = 0;
  for (unsigned i = 0; i < 16; ++i) {
    const Cast cast{.asks_store = (i & 1) != 0,
                    .by_executor = (i & 2) != 0,
                    .is_canceled = (i & 4) != 0,
                    .ends_early = (i & 8) != 0};
    SCOPED_TRACE(i);
    scenes += play_all(cast);
  }
  EXPECT_GT(scenes, 500U);
}

}  // namespace read_state_test
}  // namespace fcap::checker
