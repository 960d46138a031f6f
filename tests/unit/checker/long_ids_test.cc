// Ids that a host passes on from a request may have any length: an asynchronous call neither copies
// nor keeps what it refuses.
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "failing_new.h"
#include "fixtures.h"

namespace fcap::checker_test {
namespace long_ids_test {

constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr std::size_t kMuch = std::size_t{64} << 10;
constexpr Candidate kCandidates[] = {{"c1"}};
constexpr std::string_view kIds[] = {"a"};

class LongIds : public ::testing::Test {
 protected:
  LongIds() {
    world_.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
    world_.store->answer_at_once = StoreCode::kNotFound;
  }

  // What `start` allocates at once at most, and the reason that it is answered with.
  template <typename Result, typename Start>
  static auto reason_of(const Start& start) {
    std::promise<Result> answer;
    take_largest_allocation();
    start([&](Result result) { answer.set_value(std::move(result)); });
    EXPECT_LT(take_largest_allocation(), kMuch);
    return answer.get_future().get().reason;
  }

  const std::string long_ = std::string(kLong, 'u');
  ScriptedChecker world_;
  Checker& checker_ = *world_.checker;
};

TEST_F(LongIds, AreNotCopiedForACheck) {
  EXPECT_EQ(reason_of<CheckResult>([&](auto done) {
              checker_.check_async(long_, kCandidates, kPatient, std::move(done));
            }),
            Reason::kInvalid);
  take_largest_allocation();
  const AsyncStart start = checker_.check_async(long_, kCandidates, kReturnsKnown, {});
  EXPECT_LT(take_largest_allocation(), kMuch);
  ASSERT_TRUE(start.answer.has_value());
  EXPECT_EQ(start.answer->reason, Reason::kInvalid);
}

TEST_F(LongIds, AreNotCopiedForAPage) {
  const auto share = [&](std::string_view user, std::string_view campaign, std::string_view id) {
    return reason_of<PagePicks>([&](auto done) {
      const Candidate candidate{campaign};
      checker_.pick_async({Promise::kShared, user, {&candidate, 1}, {&id, 1}}, {.deadline = 30s},
                          std::move(done));
    });
  };
  EXPECT_EQ(share(long_, "c1", "a"), Reason::kInvalid);
  EXPECT_EQ(share("u", "c1", long_), Reason::kInvalid);
  EXPECT_EQ(share("u", long_, "a"), Reason::kDone) << "it passes where the Checker fails open";
}

TEST_F(LongIds, AreNotCopiedForAHardCall) {
  const HardOptions patient{.deadline = 30s};
  const auto reserve = [&](std::string_view user, Candidate candidate, std::string_view id) {
    return reason_of<HardResult>([&](auto done) {
      checker_.hard_async({HardCall::kReserve, {user, candidate, id}}, patient, std::move(done));
    });
  };
  EXPECT_EQ(reserve(long_, {"c1"}, "a"), Reason::kInvalid);
  EXPECT_EQ(reserve("u", {long_}, "a"), Reason::kInvalid);
  EXPECT_EQ(reserve("u", {"c1", long_}, "a"), Reason::kInvalid);
  EXPECT_EQ(reserve("u", {"c1"}, long_), Reason::kInvalid);
  EXPECT_EQ(reason_of<PagePicks>([&](auto done) {
              checker_.pick_async({Promise::kReserved, long_, kCandidates, kIds}, {.deadline = 30s},
                                  std::move(done));
            }),
            Reason::kInvalid);
}

// A segment's name may be long, and there may be many; the next check does not need their memory.
TEST_F(LongIds, MemoryForLongSegmentsIsNotKept) {
  const std::string_view segments[] = {long_};
  CheckOptions options = kPatient;
  options.segments = segments;
  for (int i = 0; i < 2; ++i) {
    std::promise<void> answered;
    take_largest_allocation();
    checker_.check_async("u", kCandidates, options,
                         [&](const CheckResult&) { answered.set_value(); });
    EXPECT_GE(take_largest_allocation(), kLong) << "it is copied into memory of its own";
    answered.get_future().wait();
    // The read has been let go of once nothing is pending any more.
    while (world_.checker->stats().pending > 0) std::this_thread::yield();
  }
}

}  // namespace long_ids_test
}  // namespace fcap::checker_test
