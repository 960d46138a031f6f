// Random histories, rules and questions, in random order: what a Checker that remembers says is
// what an evaluation of a fresh read plus the shown impressions says, or certainly follows from it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "ledger/ledger.h"
#include "ledger/user_key.h"
#include "rules/evaluate.h"
#include "tests/support/seed.h"

namespace fcap::checker_test {
namespace local_accuracy_property_test {

constexpr int kWorlds = 500;
constexpr int kStepsAWorld = 400;
constexpr std::array<const char*, 2> kUsers{"u1", "u2"};
constexpr std::array<const char*, 3> kCampaigns{"c0", "c1", "c2"};
constexpr std::array<const char*, 3> kCreatives{"", "k0", "k1"};
constexpr std::array<const char*, 2> kSegments{"s0", "s1"};

struct Event {
  std::string id;
  ledger::Entry entry;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed), local_(options()) {
    local_.store->answer_at_once = StoreCode::kOk;
    swap_rules();
  }

  void step() {
    switch (between(0, 13)) {
      case 0:
      case 1:
      case 2:
        return record(new_event(), any(kUsers));
      case 3:
        return record_again();
      case 4:
      case 5:
        return note_shown();
      case 6:
        return confirm_shown();
      case 7:
        return compact(any(kUsers));
      case 8:
        now_ += std::chrono::milliseconds(
            between(0, any_of<std::int64_t>({9'999, 3'600'000, 43'200'000})));
        return;
      case 9:
        if (one_in(8)) swap_rules();
        return;
      default:
        return ask();
    }
  }

  [[nodiscard]] CheckerStats stats() const { return local_.checker->stats(); }

 private:
  static CheckerOptions options() {
    CheckerOptions options = patient_options();
    options.local.cached_caps_max = 64;  // so few that verdicts push each other out
    options.local.cached_caps_for = 24h;
    return options;
  }

  std::int64_t between(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <std::size_t kCount>
  const char* any(const std::array<const char*, kCount>& choices) {
    return choices[static_cast<std::size_t>(between(0, kCount - 1))];
  }

  template <typename T>
  T any_of(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, std::ssize(choices) - 1));
  }

  Event new_event() {
    Event event{.id = "e" + std::to_string(++events_), .entry = {}};
    event.entry = {.time = now_ - std::chrono::milliseconds(between(
                                      -300'000, any_of<std::int64_t>({0, 7'200'000, 90'000'000}))),
                   .campaign = ledger::id_hash(any(kCampaigns)),
                   .creative = ledger::id_hash(any(kCreatives)),
                   .type = one_in(6) ? EventType::kClick : EventType::kImpression,
                   .fingerprint = ledger::fingerprint(event.id)};
    return event;
  }

  std::string& record_of(std::string_view user) {
    std::string key;
    ledger::user_key("fcap", user, key);
    return local_.store->records[key];
  }

  void record(const Event& event, std::string_view user) {
    ledger::append_entries({&event.entry, 1}, record_of(user));
    recorded_.emplace_back(event, user);
  }

  // A copy, perhaps with a later time, which then wins.
  void record_again() {
    if (recorded_.empty()) return;
    auto [event, user] = recorded_[static_cast<std::size_t>(between(0, std::ssize(recorded_) - 1))];
    event.entry.time += std::chrono::milliseconds(one_in(2) ? between(0, 3'600'000) : 0);
    record(event, user);
  }

  void note_shown() {
    const std::string_view user = any(kUsers);
    const std::string id = "e" + std::to_string(++events_);
    const Candidate candidate{any(kCampaigns), any(kCreatives)};
    ASSERT_TRUE(local_.checker->note_shown({user, candidate, id, now_}));
    const auto key = rules::candidate_key(candidate);
    shown_[std::string(user)].push_back({.id = id,
                                         .entry = {.time = now_,
                                                   .campaign = key.campaign,
                                                   .creative = key.creative,
                                                   .type = EventType::kImpression,
                                                   .fingerprint = ledger::fingerprint(id)}});
  }

  // The event comes back through Kafka, with the producer's clock; until then it is only believed.
  void confirm_shown() {
    const std::string user = any(kUsers);
    auto& shown = shown_[user];
    if (shown.empty()) return;
    Event event = shown.front();
    shown.erase(shown.begin());
    event.entry.time += std::chrono::milliseconds(between(-1'800'000, 50));
    record(event, user);
  }

  void compact(std::string_view user) {
    std::string& record = record_of(user);
    ledger::Ledger ledger;
    ASSERT_EQ(ledger.decode(record), ledger::DecodeCode::kOk);
    record = ledger::compact(ledger, record, {.trim_now = now_}).record;
  }

  Window window() {
    Window window;
    switch (between(0, 7)) {
      case 0:
      case 1:
        return {.kind = Window::Kind::kFixed, .length = one_in(2) ? 1h : 24h};
      case 2:
        return {.kind = Window::Kind::kLifetime};
      case 3:
        return {.kind = Window::Kind::kCalendar, .unit = CalendarUnit::kDay};
      case 4:
        return {.kind = Window::Kind::kCalendar,
                .unit = CalendarUnit::kHour,
                .time_zone = "Asia/Kolkata"};
      default:
        window.length = one_in(2) ? 1h : 24h;
        return window;
    }
  }

  void swap_rules() {
    std::vector<Rule> rules;
    const std::int64_t count = between(1, 6);
    for (std::int64_t i = 0; i < count; ++i) {
      Rule rule;
      rule.id = "r" + std::to_string(i);
      rule.scope = static_cast<Scope>(between(0, 4));
      if (rule.scope == Scope::kCampaign) rule.target = one_in(2) ? "*" : any(kCampaigns);
      if (rule.scope == Scope::kCreative) rule.target = one_in(2) ? "*" : "k0";
      if (rule.scope == Scope::kAdvertiser) rule.target = one_in(2) ? "*" : "a0";
      if (rule.scope == Scope::kGroup) rule.target = "g0";
      if (one_in(6)) rule.event_type = EventType::kClick;
      if (!one_in(8)) rule.limit = static_cast<std::uint32_t>(one_in(10) ? 0 : between(1, 5));
      rule.window = window();
      if (one_in(4)) rule.segment = any(kSegments);
      if (one_in(5))
        rule.start = now_ + std::chrono::milliseconds(between(-86'400'000, 86'400'000));
      if (one_in(5)) rule.end = now_ + std::chrono::milliseconds(between(-86'400'000, 86'400'000));
      if (one_in(8)) rule.mode = Rule::Mode::kShadow;
      rules.push_back(std::move(rule));
    }
    // Often the same version: it is the set that counts, not its number.
    rules_ = rule_set(std::move(rules),
                      {{.id = "c0", .advertiser_id = "a0", .groups = {"g0"}},
                       {.id = "c1", .advertiser_id = "a0", .groups = {}},
                       {.id = "c2", .advertiser_id = "a1", .groups = {"g0"}}},
                      static_cast<std::uint64_t>(between(1, 3)));
    local_.checker->set_rules(rules_);
  }

  std::vector<Verdict> truth(const std::string& user, const std::vector<Candidate>& candidates,
                             const CheckOptions& options) {
    ledger::Ledger ledger;
    EXPECT_EQ(ledger.decode(record_of(user)), ledger::DecodeCode::kOk);
    for (const Event& event : shown_[user]) ledger.merge(event.entry);
    std::vector<rules::CandidateKey> keys;
    keys.reserve(candidates.size());
    for (const Candidate& candidate : candidates) keys.push_back(rules::candidate_key(candidate));
    std::vector<Verdict> verdicts(keys.size());
    evaluator_.evaluate(
        {.rules = *rules_, .ledger = ledger, .now = *options.now, .segments = options.segments},
        keys, verdicts);
    return verdicts;
  }

  CheckResult answer(const std::string& user, const std::vector<Candidate>& candidates,
                     const CheckOptions& options) {
    switch (between(0, 2)) {
      case 0:
        return local_.checker->check(user, candidates, options);
      case 1: {
        const CheckRequest one{user, candidates};
        return local_.checker->check_batch({&one, 1}, options).front();
      }
      default: {
        std::promise<CheckResult> answered;
        local_.checker->check_async(user, candidates, options, [&answered](CheckResult result) {
          answered.set_value(std::move(result));
        });
        return answered.get_future().get();
      }
    }
  }

  void ask() {
    const std::string user = any(kUsers);
    std::vector<Candidate> candidates(static_cast<std::size_t>(between(1, 3)));
    for (Candidate& candidate : candidates) candidate = {any(kCampaigns), any(kCreatives)};
    std::vector<std::string_view> segments;
    if (one_in(2)) segments.emplace_back(any(kSegments));
    CheckOptions options = kPatient;
    options.now = one_in(5) ? now_ - std::chrono::milliseconds(between(0, 9'000'000)) : now_;
    options.segments = segments;

    const std::vector<Verdict> expected = truth(user, candidates, options);
    const bool failing = one_in(6);
    local_.store->answer_at_once = failing ? StoreCode::kTimeout : StoreCode::kOk;
    if (one_in(4)) {
      compare_first_allowed(user, candidates, options, expected, failing);
    } else {
      const CheckResult result = answer(user, candidates, options);
      ASSERT_EQ(result.verdicts.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        compare(result.verdicts[i], expected[i], failing);
      }
    }
    local_.store->answer_at_once = StoreCode::kOk;
  }

  void compare_first_allowed(const std::string& user, const std::vector<Candidate>& candidates,
                             const CheckOptions& options, const std::vector<Verdict>& expected,
                             bool failing) {
    const std::vector<std::size_t> picked =
        local_.checker->first_allowed(user, candidates, 1, options).picked;
    // A failing store leaves what this process noted, which here need not be what was recorded: it
    // may cap a candidate that a read would let pass (compare()).
    if (failing) {
      EXPECT_LE(picked.size(), 1U);
      return;
    }
    const auto first = std::find_if(expected.begin(), expected.end(),
                                    [](const Verdict& verdict) { return verdict.allowed; });
    if (first == expected.end()) {
      EXPECT_TRUE(picked.empty());
    } else {
      ASSERT_EQ(picked.size(), 1U);
      EXPECT_EQ(picked.front(), static_cast<std::size_t>(first - expected.begin()));
    }
  }

  static void compare(const Verdict& verdict, const Verdict& expected, bool failing) {
    if (verdict.cached) {
      EXPECT_FALSE(verdict.allowed);
      EXPECT_FALSE(expected.allowed);
      EXPECT_FALSE(verdict.rule_id.empty());
      if (expected.eligible_at) {
        ASSERT_TRUE(verdict.eligible_at);
        EXPECT_LE(*verdict.eligible_at, *expected.eligible_at);
      }
      return;
    }
    if (failing && verdict.reason == Reason::kTimeout) {
      EXPECT_TRUE(verdict.allowed);
      return;
    }
    if (failing && verdict.reason == Reason::kCapped) {
      // Certain as far as note_shown() was told the truth: in this world an event may come back
      // half an hour earlier than it was noted, and no read has said so yet. How much earlier the
      // user is then eligible has no bound: a fixed window may begin elsewhere.
      EXPECT_FALSE(verdict.allowed);
      EXPECT_FALSE(verdict.rule_id.empty());
      return;
    }
    EXPECT_EQ(verdict.allowed, expected.allowed);
    EXPECT_EQ(verdict.rule_id, expected.rule_id);
    // Where no rule counts anything, nothing is read, and a limit of 0 does not say how many.
    if (expected.limit > 0) {
      EXPECT_EQ(verdict.count, expected.count);
    }
    EXPECT_EQ(verdict.limit, expected.limit);
    EXPECT_EQ(verdict.eligible_at, expected.eligible_at);
  }

  std::mt19937_64 random_;
  Instant now_ = kNow;
  std::uint64_t events_ = 0;
  std::vector<std::pair<Event, std::string>> recorded_;
  std::map<std::string, std::vector<Event>> shown_;
  std::shared_ptr<const RuleSet> rules_;
  rules::Evaluator evaluator_;
  ScriptedChecker local_;
};

TEST(LocalAccuracyProperty, SaysWhatAFreshReadPlusTheShownImpressionsSay) {
  const std::uint64_t seed = test_seed();
  std::uint64_t cached_verdicts = 0;
  std::uint64_t cached_checks = 0;
  std::uint64_t confirmed = 0;
  for (std::uint64_t i = 0; i < kWorlds && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + i));
    World world(seed + i);
    for (int step = 0; step < kStepsAWorld && !::testing::Test::HasFailure(); ++step) world.step();
    const CheckerStats stats = world.stats();
    cached_verdicts += stats.cache.verdicts;
    cached_checks += stats.cache.checks;
    confirmed += stats.shown.confirmed;
  }
  // It was about something.
  EXPECT_GT(cached_verdicts, cached_checks);
  EXPECT_GT(cached_checks, 0U);
  EXPECT_GT(confirmed, 0U);
}

}  // namespace local_accuracy_property_test
}  // namespace fcap::checker_test
