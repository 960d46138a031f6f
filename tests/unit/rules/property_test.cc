#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "tests/unit/rules/reference.h"
#include "tests/unit/rules/rules_fixture.h"

// Random rule sets, histories and instants, compared with the reference. The world is small, so
// that rules meet: few campaigns, few windows, limits around the counts there are, and instants
// at the edges of windows. Re-run one with FCAP_TEST_SEED.
namespace fcap::rules {
namespace {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::int64_t kRetentionMs = 32 * 86'400'000LL;

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, static_cast<std::int64_t>(choices.size()) - 1));
  }

  reference::World make();
  std::int64_t instant();
  reference::Candidate candidate() {
    return {one_of<const char*>({"c0", "c1", "c2", "c3"}),
            one_of<const char*>({"", "k0", "k1", "k2"})};
  }
  std::mt19937_64& random() { return random_; }

 private:
  Window window();
  Rule rule(int number);

  // 2026-03-29T01:00Z, when Berlin's clocks go forward, give or take a few weeks.
  std::int64_t centre_ms_ = 1'774'746'000'000;
  std::mt19937_64 random_;
  reference::World world_;
};

Window RandomWorld::window() {
  using Unit = CalendarUnit;
  switch (between(0, 11)) {
    case 0:
    case 1:
      return sliding(1h);
    case 2:
      return sliding(24h);
    case 3:
      return fixed(1h);
    case 4:
      return fixed(8h);
    case 5:
      return fixed(one_of<std::chrono::milliseconds>({24h, 16 * 24h, 32 * 24h}));
    case 6:
      return lifetime();
    case 7:
      return sliding(one_of<std::chrono::milliseconds>({1ms, 7 * 24h, 32 * 24h}));
    case 8:
      return calendar(Unit::kHour, one_of<const char*>({"Australia/Lord_Howe", "Asia/Kolkata"}));
    case 9:
      return calendar(Unit::kDay, one_of<const char*>({"UTC", "Europe/Berlin", "Asia/Beirut"}));
    case 10:
      return calendar(Unit::kWeek, "America/Havana",
                      one_in(2) ? std::chrono::Monday : std::chrono::Sunday);
    default:
      return calendar(Unit::kMonth, one_of<const char*>({"UTC", "America/New_York"}));
  }
}

Rule RandomWorld::rule(int number) {
  Rule rule;
  rule.id = "r" + std::to_string(number);
  rule.scope = static_cast<Scope>(between(0, 4));
  switch (rule.scope) {
    case Scope::kCampaign:
      rule.target = one_of<const char*>({"*", "c0", "c1", "c3"});
      break;
    case Scope::kCreative:
      rule.target = one_of<const char*>({"*", "k0", "k1"});
      break;
    case Scope::kAdvertiser:
      rule.target = one_of<const char*>({"*", "a0", "a1"});
      break;
    case Scope::kGroup:
      rule.target = one_of<const char*>({"*", "g0", "g1"});
      break;
    case Scope::kUser:
      break;
  }
  if (one_in(5)) rule.event_type = EventType::kClick;
  if (!one_in(8)) {
    rule.limit = one_in(12) ? 0U : static_cast<std::uint32_t>(between(1, 4));
  }
  rule.window = window();
  if (one_in(3)) rule.segment = one_of<const char*>({"s0", "s1", "s2"});
  if (one_in(4)) rule.start = instant_from_ms(instant());
  if (one_in(4)) rule.end = instant_from_ms(instant());
  if (one_in(6)) rule.mode = Rule::Mode::kShadow;
  if (one_in(3)) rule.enforcement = Rule::Enforcement::kHard;
  return rule;
}

// Mostly close to the centre, sometimes exactly an edge of some entry's window.
std::int64_t RandomWorld::instant() {
  if (!world_.events.empty() && one_in(2)) {
    const auto& event = world_.events[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(world_.events.size()) - 1))];
    const std::int64_t length = one_of<std::int64_t>(
        {0, 3'600'000, 8 * std::int64_t{3'600'000}, 86'400'000, 16 * 86'400'000LL, kRetentionMs});
    return std::min(event.at_ms + length + between(-1, 1),
                    centre_ms_ + std::int64_t{60} * 86'400'000);
  }
  const std::int64_t spread = one_of<std::int64_t>({3'600'000, 86'400'000, 40 * 86'400'000LL});
  return centre_ms_ + between(-spread, spread);
}

reference::World RandomWorld::make() {
  world_ = {};
  world_.retention_ms = kRetentionMs;
  world_.spec.campaigns = {{.id = "c0", .advertiser_id = "a0", .groups = {"g0", "g1"}},
                           {.id = "c1", .advertiser_id = "a0", .groups = {"g1"}},
                           {.id = "c2", .advertiser_id = "a1", .groups = {}, .deleted = true}};
  const std::int64_t events = between(0, 14);
  for (std::int64_t i = 0; i < events; ++i) {
    const reference::Candidate what = candidate();
    world_.events.push_back({instant(), what.campaign, what.creative,
                             one_in(5) ? EventType::kClick : EventType::kImpression});
  }
  const std::int64_t rules = between(1, 9);
  for (int i = 0; i < rules; ++i) world_.spec.rules.push_back(rule(i));
  for (const char* segment : {"s0", "s1"}) {
    if (one_in(2)) world_.segments.emplace_back(segment);
  }
  return world_;
}

ledger::Ledger ledger_of(const reference::World& world, std::mt19937_64& random) {
  std::vector<ledger::Entry> entries;
  for (std::size_t i = 0; i < world.events.size(); ++i) {
    const reference::Event& event = world.events[i];
    entries.push_back({.time = instant_from_ms(event.at_ms),
                       .campaign = ledger::id_hash(event.campaign),
                       .creative = ledger::id_hash(event.creative),
                       .type = event.type,
                       .fingerprint = static_cast<std::uint32_t>(i)});
  }
  std::shuffle(entries.begin(), entries.end(), random);
  ledger::Ledger ledger;
  for (const ledger::Entry& entry : entries) ledger.merge(entry);
  return ledger;
}

std::optional<std::int64_t> as_ms(const std::optional<Instant>& instant) {
  if (!instant) return std::nullopt;
  return to_ms(*instant);
}

void expect_same(const Verdict& verdict, const reference::Answer& expected) {
  EXPECT_EQ(verdict.allowed, expected.allowed);
  EXPECT_EQ(verdict.rule_id, expected.rule_id);
  EXPECT_EQ(verdict.count, expected.count);
  EXPECT_EQ(verdict.limit, expected.limit);
  EXPECT_EQ(as_ms(verdict.eligible_at), expected.eligible_ms);
  EXPECT_TRUE(verdict.complete);
}

void expect_same(const Explanation& explanation, const reference::Answer& expected) {
  EXPECT_EQ(explanation.applicable.size(), expected.accounts.size());
  for (const RuleAccount& account : explanation.applicable) {
    const auto found = expected.accounts.find({account.rule->id, account.target});
    if (found == expected.accounts.end()) {
      ADD_FAILURE() << account.rule->id << " does not apply";
      continue;
    }
    EXPECT_EQ(account.count, found->second.count) << account.rule->id;
    EXPECT_EQ(account.stands_in_way, found->second.stands) << account.rule->id;
    EXPECT_EQ(as_ms(account.eligible_at), found->second.eligible_ms) << account.rule->id;
    EXPECT_TRUE(account.replaced_by.empty());
  }
}

constexpr std::string_view kUser = "u1";

// Who is in which segment, told in the two ways there are: some by the caller, some are stored,
// some both.
struct Told {
  std::vector<std::string_view> by_caller;
  std::shared_ptr<const SegmentSet> stored;
};

Told tell(const reference::World& world, std::mt19937_64& random) {
  Told told;
  SegmentSetBuilder builder;
  EXPECT_TRUE(builder.name("s2").ok());
  EXPECT_TRUE(builder.add("s1", "somebody else").ok());
  for (const std::string& segment : world.segments) {
    const std::uint64_t how = random() % 3;
    if (how != 0) told.by_caller.push_back(segment);
    if (how == 1) continue;
    EXPECT_TRUE(builder.add(segment, kUser).ok());
  }
  told.stored = std::move(builder).finish(1);
  return told;
}

// One world, some instants, all candidates.
void compare_one(std::uint64_t seed) {
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  RandomWorld random(seed);
  const reference::World world = random.make();
  RuleSetSpec spec = world.spec;
  std::shuffle(spec.rules.begin(), spec.rules.end(), random.random());
  std::shuffle(spec.campaigns.begin(), spec.campaigns.end(), random.random());
  auto built = RuleSet::build(spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
  ASSERT_TRUE(built.ok()) << built.status().text();
  const ledger::Ledger ledger = ledger_of(world, random.random());
  const Told told = tell(world, random.random());

  Evaluator evaluator;
  const std::int64_t now_ms = random.instant();
  const Evaluator::Question question{.rules = *built.value(),
                                     .ledger = ledger,
                                     .now = instant_from_ms(now_ms),
                                     .segments = told.by_caller,
                                     .stored = told.stored.get(),
                                     .user = kUser};
  std::vector<reference::Candidate> candidates;
  std::vector<CandidateKey> keys;
  for (int i = 0; i < 3; ++i) {
    candidates.push_back(random.candidate());
    keys.push_back(candidate_key({candidates.back().campaign, candidates.back().creative}));
  }
  std::vector<Verdict> verdicts(keys.size());
  const std::uint32_t shadow = evaluator.evaluate(question, keys, verdicts);
  std::uint32_t expected_shadow = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    SCOPED_TRACE(candidates[i].campaign + "/" + candidates[i].creative + " at " +
                 std::to_string(now_ms));
    const reference::Answer expected = reference::judge(world, candidates[i], now_ms);
    expected_shadow += expected.shadow ? 1 : 0;
    expect_same(verdicts[i], expected);
    const Explanation explanation =
        evaluator.explain(question, {candidates[i].campaign, candidates[i].creative});
    expect_same(explanation.verdict, expected);
    expect_same(explanation, expected);
  }
  EXPECT_EQ(shadow, expected_shadow);
}

TEST(Property, EveryAnswerEqualsTheReference) {
  const bool one_seed = given_seed().has_value();
  const std::uint64_t seed = test_seed();
  std::cout << "FCAP_TEST_SEED=" << seed << "\n";
  const std::uint64_t worlds = one_seed ? 1 : 1500;
  for (std::uint64_t i = 0; i < worlds && !HasFailure(); ++i) compare_one(seed + i);
}

TEST(Property, CompactionAtAnyPointLeavesEveryAnswerAsItWas) {
  const std::uint64_t seed = test_seed();
  std::cout << "FCAP_TEST_SEED=" << seed << "\n";
  for (std::uint64_t i = 0; i < 1500 && !HasFailure(); ++i) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + i));
    RandomWorld random(seed + i);
    const reference::World world = random.make();
    auto built = RuleSet::build(world.spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
    ASSERT_TRUE(built.ok()) << built.status().text();
    const ledger::Ledger ledger = ledger_of(world, random.random());
    const std::int64_t now_ms = random.instant();
    // Whenever it was compacted: the trimming clock is never ahead of the check's.
    const Instant trim_now =
        instant_from_ms(std::max<std::int64_t>(0, now_ms - random.between(0, kRetentionMs)));
    const ledger::Compacted compacted = ledger::compact(
        ledger, {}, {.retention = std::chrono::milliseconds{kRetentionMs}, .trim_now = trim_now});
    ledger::Ledger again;
    ASSERT_EQ(again.decode(compacted.record), ledger::DecodeCode::kOk);

    const std::vector<std::string_view> segments(world.segments.begin(), world.segments.end());
    const reference::Candidate candidate = random.candidate();
    const CandidateKey key = candidate_key({candidate.campaign, candidate.creative});
    Evaluator evaluator;
    Verdict before;
    Verdict after;
    evaluator.evaluate({*built.value(), ledger, instant_from_ms(now_ms), segments}, {&key, 1},
                       {&before, 1});
    evaluator.evaluate({*built.value(), again, instant_from_ms(now_ms), segments}, {&key, 1},
                       {&after, 1});
    EXPECT_EQ(before.allowed, after.allowed);
    EXPECT_EQ(before.rule_id, after.rule_id);
    EXPECT_EQ(before.count, after.count);
    EXPECT_EQ(before.eligible_at, after.eligible_at);
  }
}

}  // namespace
}  // namespace fcap::rules
