#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "rules/reserve_decision.h"
#include "tests/unit/rules/random_world.h"
#include "tests/unit/rules/reference.h"
#include "tests/unit/rules/rules_fixture.h"

// Reservations in random worlds, compared with the reference. Re-run one with FCAP_TEST_SEED.
namespace fcap::rules {
namespace reservations_property_test {

constexpr std::int64_t kDayMs = 86'400'000;

template <typename CompareOne>
void compare_worlds(std::uint64_t worlds, CompareOne compare_one) {
  const std::uint64_t seed = test_seed();
  if (given_seed()) worlds = 1;
  for (std::uint64_t i = 0; i < worlds && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + i));
    compare_one(seed + i);
  }
}

std::shared_ptr<const RuleSet> rules_of(const reference::World& world) {
  auto built = RuleSet::build(world.spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
  EXPECT_TRUE(built.ok()) << built.status().text();
  return built.value();
}

// A world with reservations, its rules and one question about it.
struct Asked {
  explicit Asked(std::uint64_t seed) : random(seed), world(random.make()) {
    random.reserve(world);
    rules = rules_of(world);
    segments.assign(world.segments.begin(), world.segments.end());
    now_ms = random.instant_of_reservations(world);
    candidate = random.candidate();
    key = candidate_key({candidate.campaign, candidate.creative});
  }

  [[nodiscard]] Evaluator::EvaluatorInput question(const ledger::Ledger& ledger) const {
    return {
        .rules = *rules, .ledger = ledger, .now = instant_from_ms(now_ms), .segments = segments};
  }
  Verdict verdict(const ledger::Ledger& ledger) {
    Verdict verdict;
    evaluator.evaluate(question(ledger), {&key, 1}, {&verdict, 1});
    return verdict;
  }

  RandomWorld random;
  reference::World world;
  std::shared_ptr<const RuleSet> rules;
  std::vector<std::string_view> segments;
  std::int64_t now_ms = 0;
  reference::Candidate candidate;
  CandidateKey key;
  Evaluator evaluator;
};

TEST(ReservationsProperty, EveryAnswerEqualsTheReference) {
  std::uint64_t reserved = 0;
  std::uint64_t provisional = 0;
  compare_worlds(3000, [&](std::uint64_t seed) {
    Asked asked(seed);
    const ledger::Ledger ledger = ledger_of(asked.world, asked.random.random());
    const reference::Answer expected = reference::judge(asked.world, asked.candidate, asked.now_ms);
    const Verdict verdict = asked.verdict(ledger);
    expect_same(verdict, expected);
    provisional += verdict.provisional ? 1 : 0;
    const CandidateExplanation explanation = asked.evaluator.explain(
        asked.question(ledger), {asked.candidate.campaign, asked.candidate.creative});
    expect_same(explanation, expected);
    for (const RuleAccount& account : explanation.applicable) {
      reserved += account.reserved > 0 ? 1 : 0;
    }
  });
  if (given_seed()) return;
  EXPECT_GT(reserved, 300U) << "the worlds have live reservations";
  EXPECT_GT(provisional, 100U);
}

TEST(ReservationsProperty, WhatIsCertainRestsOnEntriesAlone) {
  std::uint64_t certain = 0;
  compare_worlds(2000, [&](std::uint64_t seed) {
    Asked asked(seed);
    const ledger::Ledger ledger = ledger_of(asked.world, asked.random.random());
    asked.world.reservations.clear();
    const ledger::Ledger entries = ledger_of(asked.world, asked.random.random());
    (void)asked.verdict(ledger);
    const auto with = asked.evaluator.capped_until(0);
    (void)asked.verdict(entries);
    const auto without = asked.evaluator.capped_until(0);
    ASSERT_EQ(with.has_value(), without.has_value());
    if (!with) return;
    ++certain;
    EXPECT_EQ(with->rule, without->rule);
    EXPECT_EQ(with->count, without->count);
    EXPECT_EQ(with->until, without->until);
  });
  EXPECT_TRUE(given_seed() || certain > 100) << certain;
}

TEST(ReservationsProperty, AVerdictThatIsNotProvisionalDoesNotDependOnConfirmations) {
  compare_worlds(2000, [&](std::uint64_t seed) {
    Asked asked(seed);
    const Verdict before = asked.verdict(ledger_of(asked.world, asked.random.random()));
    if (before.allowed || before.provisional) return;
    const reference::World past = asked.world;
    for (const reference::Reservation& each : past.reservations) {
      if (is_live(past, each, asked.now_ms)) asked.world.events.push_back(each.event);
    }
    const Verdict after = asked.verdict(ledger_of(asked.world, asked.random.random()));
    EXPECT_EQ(before.eligible_at, after.eligible_at);
  });
}

bool has_fixed_windows(const reference::World& world) {
  return std::any_of(world.spec.rules.begin(), world.spec.rules.end(),
                     [](const Rule& rule) { return rule.window.kind == Window::Kind::kFixed; });
}

// With fixed windows, what is granted must also be so whichever reservations are confirmed first.
TEST(ReservationsProperty, AnEventIsGrantedExactlyWhereNoRuleExceedsItsLimitWithIt) {
  std::uint64_t granted = 0;
  std::uint64_t refused = 0;
  compare_worlds(3000, [&](std::uint64_t seed) {
    Asked asked(seed);
    const ledger::Ledger ledger = ledger_of(asked.world, asked.random.random());
    const ReserveDecision decision =
        decide_reserve(asked.evaluator, asked.question(ledger), {asked.key, {}, 4'000'000});
    const bool expected = reference::may_reserve(asked.world, asked.candidate, asked.now_ms);
    const bool is_granted = decision.answer == ReserveAnswer::kGranted;
    EXPECT_TRUE(is_granted || decision.answer == ReserveAnswer::kCapped);
    if (is_granted || !has_fixed_windows(asked.world)) {
      EXPECT_EQ(is_granted, expected);
    }
    ++(is_granted ? granted : refused);
    if (!is_granted) return;
    reference::World confirmed = asked.world;
    for (const reference::Reservation& each : asked.world.reservations) {
      const bool is_live = reference::is_live(asked.world, each, asked.now_ms);
      if (is_live && asked.random.one_in(2)) confirmed.events.push_back(each.event);
    }
    EXPECT_TRUE(reference::may_reserve(confirmed, asked.candidate, asked.now_ms));
  });
  if (given_seed()) return;
  EXPECT_GT(granted, 500U);
  EXPECT_GT(refused, 500U);
}

// The most events that a window of the chain over `times` (ascending) has.
std::size_t fullest_window(const std::vector<std::int64_t>& times, std::int64_t length_ms) {
  std::size_t fullest = 0;
  for (std::size_t at = 0; at < times.size();) {
    const std::size_t opened = at;
    while (at < times.size() && times[at] < times[opened] + length_ms) ++at;
    fullest = std::max(fullest, at - opened);
  }
  return fullest;
}

TEST(ReservationsProperty, AFixedWindowIsNeverOverfullInWhateverOrderEventsAreConfirmed) {
  constexpr std::int64_t kLengthMs = 60'000;
  constexpr std::int64_t kStartMs = 1'774'746'000'000;
  std::size_t shown = 0;
  compare_worlds(300, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Scene scene;
    const auto limit = static_cast<std::uint32_t>(1 + random() % 3);
    scene.rule({.id = "r",
                .target = "*",
                .limit = limit,
                .window = fixed(std::chrono::milliseconds{kLengthMs})});
    std::vector<ledger::Entry> expected;
    std::vector<std::int64_t> confirmed;
    const auto confirm_some = [&](std::uint64_t one_in) {
      std::erase_if(expected, [&](const ledger::Entry& event) {
        if (random() % one_in != 0) return false;
        scene.ledger().merge(event);
        confirmed.push_back(to_ms(event.time));
        return true;
      });
    };
    std::int64_t now_ms = kStartMs;
    for (std::uint32_t print = 1; print <= 60; ++print) {
      now_ms += static_cast<std::int64_t>(random() % 15'000);
      const WantedEvent wanted{.candidate = candidate_key({"c1", ""}), .fingerprint = print};
      const auto decision = decide_reserve(scene.evaluator(), scene.question(now_ms), wanted);
      if (decision.answer == ReserveAnswer::kGranted) {
        expected.push_back({.time = decision.time,
                            .campaign = wanted.candidate.campaign,
                            .creative = 0,
                            .type = wanted.type,
                            .fingerprint = print});
        scene.ledger().merge(ledger::Reservation{
            .event = expected.back(), .expires = decision.time + std::chrono::minutes{15}});
      }
      confirm_some(1 + seed % 20);
    }
    confirm_some(1);
    std::sort(confirmed.begin(), confirmed.end());
    EXPECT_LE(fullest_window(confirmed, kLengthMs), limit);
    shown += confirmed.size();
  });
  EXPECT_TRUE(given_seed() || shown > 1500) << shown;
}

// A record that several writers append to, copy and compact, in whatever order.
class Copies {
 public:
  Copies(RandomWorld& random, std::vector<std::string> frames) : random_(random) {
    std::shuffle(frames.begin(), frames.end(), random.random());
    for (std::string& frame : frames) {
      const bool late = random.one_in(3);
      if (late) frames_late_.push_back(frame);
      if (!late || random.one_in(2)) frames_.push_back(std::move(frame));
    }
  }

  // From now on, records are trimmed to so many bytes.
  void trim_to(std::size_t bytes_max) { bytes_max_ = bytes_max; }
  // Reservations that were left out for that.
  [[nodiscard]] std::size_t dropped() const { return dropped_; }

  // What is read at `now`. Whatever is compacted is compacted no later than that.
  ledger::Ledger read(std::int64_t now_ms) {
    std::vector<std::string> records(3);
    for (const std::string& frame : frames_) record_of(records) += frame;
    for (int step = 0; step < 6; ++step) compact(record_of(records), now_ms);
    if (random_.one_in(2)) records[0] += records[1];
    for (const std::string& frame : frames_late_) record_of(records) += frame;
    for (int step = 0; step < 3; ++step) compact(record_of(records), now_ms);
    std::shuffle(records.begin(), records.end(), random_.random());
    ledger::Ledger all;
    for (const std::string& record : records) {
      ledger::Ledger one;
      EXPECT_EQ(one.decode(record), ledger::DecodeCode::kOk);
      all.merge(one);
    }
    return all;
  }

 private:
  std::string& record_of(std::vector<std::string>& records) {
    return records[static_cast<std::size_t>(random_.between(0, 2))];
  }

  void compact(std::string& record, std::int64_t now_ms) {
    ledger::Ledger ledger;
    EXPECT_EQ(ledger.decode(record), ledger::DecodeCode::kOk);
    const std::int64_t ago_ms =
        random_.one_in(3) ? 0 : random_.between(0, random_.one_in(2) ? kDayMs : kRetentionMs);
    ledger::Compacted compacted =
        ledger::compact(ledger, record,
                        {.retention = std::chrono::milliseconds{kRetentionMs},
                         .trim_now = instant_from_ms(now_ms - ago_ms),
                         .record_bytes_max = bytes_max_});
    dropped_ += compacted.dropped_frames;
    record = std::move(compacted.record);
  }

  RandomWorld& random_;
  std::size_t bytes_max_ = kDefaultRecordBytesMax;
  std::size_t dropped_ = 0;
  std::vector<std::string> frames_;
  std::vector<std::string> frames_late_;  ///< some of them copies of the others
};

std::string frame_of(const reference::Event& event) {
  const ledger::Entry entry = entry_of(event);
  std::string frame;
  ledger::append_entries({&entry, 1}, frame);
  return frame;
}

std::string frame_of(const reference::Reservation& reservation) {
  std::string frame;
  ledger::append_reservation(reservation_of(reservation), frame);
  return frame;
}

// Copies of what the world has, that differ as copies may: later beacons, renewed and released
// reservations, made within minutes of each other. What was renewed does not expire sooner: a copy
// that did could be compacted away with its later time before the others are merged with it.
void add_copies(RandomWorld& random, reference::World& world) {
  const auto events = world.events;
  for (reference::Event copy : events) {
    if (random.one_in(3)) copy.at_ms += random.between(-60'000, 60'000);
    if (random.one_in(2)) world.events.push_back(copy);
  }
  const auto reservations = world.reservations;
  for (reference::Reservation copy : reservations) {
    if (random.one_in(2)) {
      copy.event.at_ms += random.between(0, 120'000);
      copy.expires_ms = std::max(copy.expires_ms, copy.event.at_ms + random.between(0, kDayMs));
    }
    copy.released = random.one_in(4);
    world.reservations.push_back(copy);
    if (random.one_in(3)) {
      reference::Event confirmed = copy.event;
      confirmed.at_ms += random.between(-60'000, 60'000);
      world.events.push_back(confirmed);
    }
  }
}

TEST(ReservationsProperty, OrdersCopiesAndCompactionsEndInEqualVerdicts) {
  std::uint64_t reserved = 0;
  compare_worlds(3000, [&](std::uint64_t seed) {
    Asked asked(seed);
    add_copies(asked.random, asked.world);
    std::vector<std::string> frames;
    for (const auto& event : asked.world.events) frames.push_back(frame_of(event));
    for (const auto& reservation : asked.world.reservations) {
      frames.push_back(frame_of(reservation));
    }
    std::optional<std::int64_t> erased_ms;
    if (asked.random.one_in(4)) {
      erased_ms = asked.now_ms - asked.random.between(-kDayMs, 2 * kDayMs);
      ledger::append_erased_before(instant_from_ms(*erased_ms), frames.emplace_back());
    }
    merge_copies(asked.world, erased_ms);
    const reference::Answer expected = reference::judge(asked.world, asked.candidate, asked.now_ms);
    for (const auto& [rule, account] : expected.accounts) reserved += account.reserved;
    for (int times = 0; times < 3; ++times) {
      const ledger::Ledger ledger = Copies(asked.random, frames).read(asked.now_ms);
      expect_same(asked.verdict(ledger), expected);
    }
  });
  EXPECT_TRUE(given_seed() || reserved > 100) << reserved;
}

// What a verdict calls complete is exact; otherwise its count is a lower bound. An event that
// confirms a reservation has its time, as it should.
TEST(ReservationsProperty, TrimsForSizeLeaveWhatIsCompleteExact) {
  std::uint64_t complete = 0;
  std::uint64_t incomplete = 0;
  compare_worlds(3000, [&](std::uint64_t seed) {
    Asked asked(seed);
    std::erase_if(asked.world.reservations, [](const auto& each) { return each.event.id < 100; });
    std::vector<std::string> frames;
    for (const reference::Reservation& each : asked.world.reservations) {
      frames.push_back(frame_of(each));
      if (asked.random.one_in(3)) asked.world.events.push_back(each.event);
    }
    for (const auto& event : asked.world.events) frames.push_back(frame_of(event));
    Copies copies(asked.random, frames);
    copies.trim_to(static_cast<std::size_t>(asked.random.between(60, 200)));
    const ledger::Ledger ledger = copies.read(asked.now_ms);
    if (copies.dropped() > 0) return;
    const reference::Answer expected = reference::judge(asked.world, asked.candidate, asked.now_ms);
    const Verdict verdict = asked.verdict(ledger);
    // A limit of 0 caps whatever is recorded: its verdict is complete, and its count proves
    // nothing.
    if (!verdict.allowed && verdict.limit == 0) return;
    if (verdict.complete) {
      ++complete;
      expect_same(verdict, expected);
      return;
    }
    ++incomplete;
    if (verdict.allowed || verdict.rule_id != expected.rule_id) return;
    // The entry that opened a fixed window may be missing, and what remains opens others.
    const auto rule = std::find_if(asked.world.spec.rules.begin(), asked.world.spec.rules.end(),
                                   [&](const Rule& each) { return each.id == expected.rule_id; });
    if (rule->window.kind == Window::Kind::kFixed) return;
    EXPECT_LE(verdict.count, expected.count);
  });
  if (given_seed()) return;
  EXPECT_GT(complete, 100U);
  EXPECT_GT(incomplete, 15U);
}

}  // namespace reservations_property_test
}  // namespace fcap::rules
