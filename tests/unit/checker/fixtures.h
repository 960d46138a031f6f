#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/checker.h>
#include <fcap/rule_set.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "scripted_store.h"
#include "tests/support/patient_options.h"

namespace fcap::checker_test {

using namespace std::chrono_literals;

inline constexpr Instant kNow = instant_from_ms(1'700'000'000'000);

inline Rule sliding_rule(std::string id, std::string campaign, std::optional<std::uint32_t> limit,
                         std::chrono::milliseconds length = 24h) {
  Rule rule;
  rule.id = std::move(id);
  rule.target = std::move(campaign);
  rule.limit = limit;
  rule.window.length = length;
  return rule;
}

inline std::shared_ptr<const RuleSet> rule_set(std::vector<Rule> rules,
                                               std::vector<Campaign> campaigns = {},
                                               std::uint64_t version = 1) {
  Result<std::shared_ptr<const RuleSet>> built = RuleSet::build(
      {.version = version, .rules = std::move(rules), .campaigns = std::move(campaigns)}, {});
  EXPECT_TRUE(built.ok()) << built.status().text();
  return built.ok() ? built.value() : nullptr;
}

/// A record with `count` impressions of one campaign, one per minute, the newest a minute ago.
inline std::string record_of(std::string_view campaign, std::uint32_t count,
                             std::string_view creative = {}) {
  std::vector<ledger::Entry> entries;
  for (std::uint32_t i = 0; i < count; ++i) {
    entries.push_back({.time = kNow - std::chrono::minutes(i + 1),
                       .campaign = ledger::id_hash(campaign),
                       .creative = ledger::id_hash(creative),
                       .type = EventType::kImpression,
                       .fingerprint = i});
  }
  std::string record;
  ledger::append_entries(entries, record);
  return record;
}

/// Replaced sets end on a thread of the Checker.
template <typename T>
void expect_let_go(const std::weak_ptr<T>& watched) {
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!watched.expired() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(watched.expired());
}

/// A Checker over a ScriptedStore, judging at kNow.
class ScriptedChecker {
 public:
  explicit ScriptedChecker(CheckerOptions options = patient_options())
      : store(std::make_shared<ScriptedStore>()) {
    options.store = store;
    options.clock = [] { return kNow; };
    Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().text();
    checker = std::move(made).value();
  }

  std::shared_ptr<ScriptedStore> store;
  std::unique_ptr<Checker> checker;
};

inline constexpr CheckOptions kPatient{.deadline = 30s, .now = {}, .segments = {}};
inline constexpr CheckOptions kReturnsKnown{
    .deadline = 30s, .now = {}, .segments = {}, .keep_record = false, .return_known = true};

}  // namespace fcap::checker_test
