#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fcap/rule.h>
#include <fcap/time.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "tests/unit/rules/reference.h"
#include "tests/unit/rules/rules_fixture.h"

/// Random rule sets, histories and instants, to compare with the reference. The world is small, so
/// that rules meet: few campaigns, few windows, limits around the counts there are, and instants
/// at the edges of windows.
namespace fcap::rules {

inline constexpr std::int64_t kRetentionMs = 32 * 86'400'000LL;

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
  /// Adds reservations, some of them of events that are there.
  void reserve(reference::World& world);
  std::int64_t instant();
  /// One that matters to a reservation, if there are any.
  std::int64_t instant_of_reservations(const reference::World& world);
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

inline Window RandomWorld::window() {
  using namespace std::chrono_literals;  // NOLINT: durations read as in the rules
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

inline Rule RandomWorld::rule(int number) {
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
inline std::int64_t RandomWorld::instant() {
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

inline reference::World RandomWorld::make() {
  world_ = {};
  world_.retention_ms = kRetentionMs;
  world_.spec.campaigns = {{.id = "c0", .advertiser_id = "a0", .groups = {"g0", "g1"}},
                           {.id = "c1", .advertiser_id = "a0", .groups = {"g1"}},
                           {.id = "c2", .advertiser_id = "a1", .groups = {}, .deleted = true}};
  const std::int64_t events = between(0, 14);
  for (std::int64_t i = 0; i < events; ++i) {
    const reference::Candidate what = candidate();
    world_.events.push_back({instant(), what.campaign, what.creative,
                             one_in(5) ? EventType::kClick : EventType::kImpression,
                             static_cast<std::uint32_t>(i)});
  }
  const std::int64_t rules = between(1, 9);
  for (int i = 0; i < rules; ++i) world_.spec.rules.push_back(rule(i));
  for (const char* segment : {"s0", "s1"}) {
    if (one_in(2)) world_.segments.emplace_back(segment);
  }
  return world_;
}

inline void RandomWorld::reserve(reference::World& world) {
  const std::int64_t around_ms = instant();
  const std::int64_t reservations = between(1, 6);
  for (std::int64_t i = 0; i < reservations; ++i) {
    const reference::Candidate what = candidate();
    reference::Event event{.at_ms = around_ms + between(-20, 20) * 60'000,
                           .campaign = what.campaign,
                           .creative = what.creative,
                           .type = one_in(5) ? EventType::kClick : EventType::kImpression,
                           .id = static_cast<std::uint32_t>(100 + i)};
    if (!world.events.empty() && one_in(4)) {
      const auto at = between(0, static_cast<std::int64_t>(world.events.size()) - 1);
      event = world.events[static_cast<std::size_t>(at)];
      event.at_ms = around_ms;
    }
    const std::int64_t life_ms = one_of<std::int64_t>({1, 60'000, 900'000, 86'400'000});
    world.reservations.push_back({event, event.at_ms + life_ms, one_in(6)});
  }
  merge_copies(world, std::nullopt);
}

inline std::int64_t RandomWorld::instant_of_reservations(const reference::World& world) {
  if (world.reservations.empty() || one_in(6)) return instant();
  const auto at = between(0, static_cast<std::int64_t>(world.reservations.size()) - 1);
  const reference::Reservation& reservation = world.reservations[static_cast<std::size_t>(at)];
  const std::int64_t edge_ms =
      one_of<std::int64_t>({reservation.event.at_ms - 300'000, reservation.event.at_ms,
                            reservation.event.at_ms + 3'600'000, reservation.expires_ms});
  return edge_ms + (one_in(2) ? between(-1, 1) : between(-900'000, 900'000));
}

inline ledger::Entry entry_of(const reference::Event& event) {
  return {.time = instant_from_ms(event.at_ms),
          .campaign = ledger::id_hash(event.campaign),
          .creative = ledger::id_hash(event.creative),
          .type = event.type,
          .fingerprint = event.id};
}

inline ledger::Reservation reservation_of(const reference::Reservation& reservation) {
  return {.event = entry_of(reservation.event),
          .expires = instant_from_ms(reservation.expires_ms),
          .released = reservation.released};
}

inline ledger::Ledger ledger_of(const reference::World& world, std::mt19937_64& random) {
  std::vector<ledger::Entry> entries;
  for (const reference::Event& event : world.events) entries.push_back(entry_of(event));
  std::shuffle(entries.begin(), entries.end(), random);
  ledger::Ledger ledger;
  for (const ledger::Entry& entry : entries) ledger.merge(entry);
  for (const auto& reservation : world.reservations) ledger.merge(reservation_of(reservation));
  return ledger;
}

inline std::optional<std::int64_t> as_ms(const std::optional<Instant>& instant) {
  if (!instant) return std::nullopt;
  return to_ms(*instant);
}

inline void expect_same(const Verdict& verdict, const reference::Answer& expected) {
  EXPECT_EQ(verdict.allowed, expected.allowed);
  EXPECT_EQ(verdict.rule_id, expected.rule_id);
  EXPECT_EQ(verdict.count, expected.count);
  EXPECT_EQ(verdict.limit, expected.limit);
  EXPECT_EQ(as_ms(verdict.eligible_at), expected.eligible_ms);
  EXPECT_TRUE(verdict.complete);
}

inline void expect_same(const CandidateExplanation& explanation,
                        const reference::Answer& expected) {
  EXPECT_EQ(explanation.applicable.size(), expected.accounts.size());
  for (const RuleAccount& account : explanation.applicable) {
    const auto found = expected.accounts.find({account.rule->id, account.target});
    if (found == expected.accounts.end()) {
      ADD_FAILURE() << account.rule->id << " does not apply";
      continue;
    }
    EXPECT_EQ(account.count, found->second.count) << account.rule->id;
    EXPECT_EQ(account.reserved, found->second.reserved) << account.rule->id;
    EXPECT_EQ(account.stands_in_way, found->second.stands) << account.rule->id;
    EXPECT_EQ(as_ms(account.eligible_at), found->second.eligible_ms) << account.rule->id;
    EXPECT_TRUE(account.replaced_by.empty());
  }
}

}  // namespace fcap::rules
