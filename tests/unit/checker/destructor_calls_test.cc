// Every public function beside the destructor: a call that has begun is over before the destructor
// returns, and the parts that it uses are there until then.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fcap/prometheus.h>

#include "checker/scrape.h"
#include "checker/seen_record.h"
#include "fixtures.h"
#include "host_store.h"
#include "support/temporary_directory.h"
#include "test_paths.h"
#include "tests/support/asking.h"
#include "tests/support/thread_state.h"

namespace fcap::checker_test {
namespace destructor_calls_test {

constexpr Candidate kCandidate{"c1"};
constexpr std::string_view kIds[] = {"a"};
constexpr HardOptions kPatientHard{.deadline = 30s};
constexpr PageOptions kPatientPage{.deadline = 30s};

// Where a call can be held.
enum class Place : std::uint8_t {
  kNowhere,
  kStore,  // in a function of the store, which must stay meanwhile
  kClock,
  kLog,
};

// The end of one Checker, as a test sees it.
struct End {
  std::atomic<pid_t> destroying{0};  // the thread that destroys the Checker
  std::atomic<bool> store_ended{false};
  std::atomic<bool> destroyed{false};
  std::atomic<Place> held_at{Place::kNowhere};  // the next call that comes by there
  std::atomic<bool> inside{false};
  std::atomic<bool> ended_too_early{false};

  // Until a destructor that does not wait has ended something, or one that does has looked again
  // and again whether the call is over.
  void hold(Place place) noexcept {
    constexpr std::uint64_t kLooks = 100;  // one that does not wait sleeps a few times, too
    Place expected = place;
    if (!held_at.compare_exchange_strong(expected, Place::kNowhere)) return;
    inside = true;
    const auto too_early = [&] { return destroyed || (place == Place::kStore && store_ended); };
    while (destroying == 0) std::this_thread::yield();
    const std::uint64_t before = times_slept(destroying);
    while (!too_early() && times_slept(destroying) < before + kLooks) {
      std::this_thread::sleep_for(1ms);
    }
    ended_too_early = too_early();
  }
};

// A store of the Checker's own, which is never ready.
class EndingStore final : public HostStore {
 public:
  explicit EndingStore(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~EndingStore() override { end_->store_ended = true; }
  [[nodiscard]] StoreHealth health() const override {
    hold();
    return {.connected = false};
  }
  [[nodiscard]] std::optional<Instant> missing_before() const noexcept override {
    hold();
    return std::nullopt;
  }
  [[nodiscard]] WriteTerms write_terms() const noexcept override {
    hold();
    return {.reservation_life_max = kDefaultReservationLifeMax};
  }

 private:
  void hold() const noexcept {
    const std::shared_ptr<End> end = end_;  // this may be gone afterwards
    end->hold(Place::kStore);
  }

  const std::shared_ptr<End> end_;
};

std::shared_ptr<const RuleSet> rules_for_a_segment_that_is_missing() {
  Rule rule = sliding_rule("r1", "c1", 1);
  Rule for_members = sliding_rule("r2", "c1", 2);
  for_members.segment = "missing";
  return rule_set({rule, for_members});
}

// With threads that follow sources. The log, the clock and the store are places to be held in.
std::unique_ptr<Checker> make_checker(const std::shared_ptr<End>& end,
                                      const TemporaryDirectory& directory) {
  CheckerOptions options = patient_options();
  options.store = std::make_shared<EndingStore>(end);
  options.rules.snapshot_file = directory.file("none");
  options.segments.directory = directory.path();
  options.clock = [end] {
    end->hold(Place::kClock);
    return kNow;
  };
  options.log = [end](LogLevel, std::string_view) { end->hold(Place::kLog); };
  Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().text();
  std::unique_ptr<Checker> checker = std::move(made).value();
  checker->set_segments(SegmentSetBuilder().finish(1));
  checker->set_rules(rules_for_a_segment_that_is_missing());
  return checker;
}

struct Call {
  std::string name;
  std::function<void(Checker&)> make;
  Place held_at = Place::kStore;
};

std::ostream& operator<<(std::ostream& out, const Call& call) {
  return out << call.name;
}

std::vector<Call> all_calls() {
  static constexpr CheckRequest kUsers[] = {{"u", {&kCandidate, 1}}};
  static const PageRequest kShared(Promise::kShared, "u", {&kCandidate, 1}, kIds);
  static const PageRequest kReserved(Promise::kReserved, "u", {&kCandidate, 1}, kIds);
  static const Impression kImpressions[] = {{"u", kCandidate, "a"}};
  static constexpr std::span<const Candidate> kCandidates{&kCandidate, 1};
  const auto ignore = [](const auto&) {};
  std::vector<Call> calls = {
      {"check", [](Checker& c) { (void)c.check("u", kCandidates, kPatient); }},
      {"check_batch", [](Checker& c) { (void)c.check_batch(kUsers, kPatient); }},
      {"explain", [](Checker& c) { (void)c.explain("u", kCandidates, kPatient); }},
      {"first_allowed", [](Checker& c) { (void)c.first_allowed("u", kCandidates, 1, kPatient); }},
      {"check_async", [=](Checker& c) { (void)c.check_async("u", kCandidates, kPatient, ignore); }},
      {"check_async",
       [=](Checker& c) { (void)c.check_async("u", kCandidates, kReturnsKnown, ignore); }},
      {"note_shown",
       [](Checker& c) {
         (void)c.note_shown({"u", kCandidate, "a"});
       },
       Place::kClock},
      {"note_shown",
       [](Checker& c) {
         (void)c.note_shown({"u", kCandidate, "a", {}, checker::SeenRecord{.known = true}.token()},
                            Note::kEverywhere);
       }},
      {"pick", [](Checker& c) { (void)c.pick(kShared, kPatientPage); }},
      {"pick_batch",
       [](Checker& c) {
         (void)c.pick_batch({&kShared, 1}, kPatientPage);
       }},
      {"pick_async", [=](Checker& c) { c.pick_async(kShared, kPatientPage, ignore); }},
      {"pick", [](Checker& c) { (void)c.pick(kReserved, kPatientPage); }},
      {"pick_batch",
       [](Checker& c) {
         (void)c.pick_batch({&kReserved, 1}, kPatientPage);
       }},
      {"pick_async", [=](Checker& c) { c.pick_async(kReserved, kPatientPage, ignore); }},
      {"take_back_shown",
       [](Checker& c) {
         (void)c.take_back_shown({"u", kCandidate, "a"});
       },
       Place::kNowhere},
      {"hard",
       [](Checker& c) {
         (void)c.hard({HardCall::kReserve, {"u", kCandidate, "a"}}, kPatientHard);
       }},
      {"hard",
       [](Checker& c) {
         (void)c.hard({HardCall::kRelease, {"u", kCandidate, "a"}}, kPatientHard);
       }},
      {"hard",
       [](Checker& c) {
         (void)c.hard({HardCall::kRecord, {"u", kCandidate, "a"}}, kPatientHard);
       }},
      {"hard_batch",
       [](Checker& c) {
         (void)c.hard_batch(asking(HardCall::kReserve, kImpressions), kPatientHard);
       }},
      {"hard_batch",
       [](Checker& c) {
         (void)c.hard_batch(asking(HardCall::kRelease, kImpressions), kPatientHard);
       }},
      {"hard_batch",
       [](Checker& c) {
         (void)c.hard_batch(asking(HardCall::kRecord, kImpressions), kPatientHard);
       }},
      {"hard_async",
       [=](Checker& c) {
         c.hard_async({HardCall::kReserve, {"u", kCandidate, "a"}}, kPatientHard, ignore);
       }},
      {"hard_async",
       [=](Checker& c) {
         c.hard_async({HardCall::kRelease, {"u", kCandidate, "a"}}, kPatientHard, ignore);
       }},
      {"hard_async",
       [=](Checker& c) {
         c.hard_async({HardCall::kRecord, {"u", kCandidate, "a"}}, kPatientHard, ignore);
       }},
      {"set_rules", [](Checker& c) { c.set_rules(rules_for_a_segment_that_is_missing()); },
       Place::kLog},
      {"rules", [](Checker& c) { (void)c.rules(); }, Place::kNowhere},
      {"set_segments", [](Checker& c) { c.set_segments(SegmentSetBuilder().finish(2)); },
       Place::kLog},
      {"segments", [](Checker& c) { (void)c.segments(); }, Place::kNowhere},
      {"stats", [](Checker& c) { (void)c.stats(); }, Place::kNowhere},
      {"shadow_counts", [](Checker& c) { (void)c.shadow_counts(); }, Place::kNowhere},
      {"health", [](Checker& c) { (void)c.health(); }},
      {"wait_ready", [](Checker& c) { EXPECT_FALSE(c.wait_ready(1h)); }},
      {"prometheus_text", [](Checker& c) { (void)prometheus_text(c); }},
  };
  return calls;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

// The member functions that the header declares, without what makes and ends a Checker, and the
// functions of all headers that take one.
std::set<std::string> public_functions() {
  const std::filesystem::path headers = std::string(FCAP_SOURCE_DIR) + "/include/fcap";
  std::string members = text_of(headers / "checker.h");
  members = members.substr(members.find("class FCAP_EXPORT Checker {"));
  members = members.substr(0, members.find(" private:"));
  std::set<std::string> names;
  const std::regex declared(R"(([~\w]+)\([^;]*;)");
  for (std::sregex_iterator found(members.begin(), members.end(), declared), end; found != end;
       ++found) {
    names.insert((*found)[1]);
  }
  std::erase_if(names, [](const std::string& name) {
    return name == "Checker" || name == "~Checker" || name == "create" || name == "void";
  });
  const std::regex takes_one(R"((\w+)\((?:const )?Checker& \w+)");
  for (const auto& header : std::filesystem::directory_iterator(headers)) {
    const std::string text = text_of(header.path());
    for (std::sregex_iterator found(text.begin(), text.end(), takes_one), end; found != end;
         ++found) {
      names.insert((*found)[1]);
    }
  }
  return names;
}

TEST(CallsBesideTheDestructor, EveryPublicFunctionIsAmongThem) {
  std::set<std::string> names;
  for (const Call& call : all_calls()) names.insert(call.name);
  EXPECT_EQ(names, public_functions());
}

class CallBesideTheDestructor : public ::testing::TestWithParam<Call> {
 protected:
  const TemporaryDirectory directory_;
  const std::shared_ptr<End> end_ = std::make_shared<End>();
  std::unique_ptr<Checker> checker_ = make_checker(end_, directory_);
};

// These calls have a place where a test can hold them.
class CallThatHasBegun : public CallBesideTheDestructor {};

TEST_P(CallThatHasBegun, IsWaitedForByTheDestructor) {
  end_->held_at = GetParam().held_at;
  std::thread calling([&, &asked = *checker_] { GetParam().make(asked); });
  while (!end_->inside) std::this_thread::yield();
  end_->destroying = ::gettid();
  checker_.reset();
  end_->destroyed = true;
  calling.join();
  EXPECT_FALSE(end_->ended_too_early);
}

// These calls run no code of the host's, so nothing can hold them. The destructor waits for each
// call that has counted itself in (CountedCall).
class CallThatCannotBeHeld : public CallBesideTheDestructor {};

TEST_P(CallThatCannotBeHeld, CountsItselfInForTheDestructor) {
  const auto begun = [this] { return Scrape(*checker_).calls_begun; };
  const std::uint64_t first = begun();
  const std::uint64_t before = begun();
  GetParam().make(*checker_);
  EXPECT_GT(begun() - before, before - first);
}

// Calls from before its beginning until its store has ended. A callback keeps it from returning.
TEST_P(CallBesideTheDestructor, MayBeMadeUntilItHasReturned) {
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> calls{0};
  std::thread calling([&, &asked = *checker_] {
    while (!over) {
      GetParam().make(asked);
      ++calls;
      std::this_thread::yield();
    }
  });
  checker_->check_async("u", {&kCandidate, 1}, kPatient, [&](const CheckResult&) {
    while (!end_->store_ended) std::this_thread::yield();
    const std::uint64_t before = calls;
    while (calls < before + 2) std::this_thread::yield();
    over = true;
    calling.join();
  });
  checker_.reset();
  EXPECT_GE(calls, 2U);
}

std::vector<Call> calls_that_can_be_held(bool can) {
  std::vector<Call> calls = all_calls();
  std::erase_if(calls, [=](const Call& call) { return (call.held_at != Place::kNowhere) != can; });
  return calls;
}

std::string name_of(const ::testing::TestParamInfo<Call>& call) {
  return call.param.name + "_" + std::to_string(call.index);
}

INSTANTIATE_TEST_SUITE_P(Each, CallBesideTheDestructor, ::testing::ValuesIn(all_calls()), name_of);
INSTANTIATE_TEST_SUITE_P(Each, CallThatHasBegun, ::testing::ValuesIn(calls_that_can_be_held(true)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Each, CallThatCannotBeHeld,
                         ::testing::ValuesIn(calls_that_can_be_held(false)), name_of);

}  // namespace destructor_calls_test
}  // namespace fcap::checker_test
